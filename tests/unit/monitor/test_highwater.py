from liob_core.monitor.highwater import HOST_UNKNOWN, NOT_PER_PROCESS, Peaks, PeakTracker
from liob_core.monitor.process import TreeReading
from liob_core.types import GpuReading

NO_GPU = "no NVIDIA driver answers"


def tree(rss, *, anon=None, swap=None, mark=None):
    return TreeReading(rss_bytes=rss, anon_bytes=anon, swap_bytes=swap, high_water_bytes=mark, n_processes=1)


def gpu(used, process=None, device=0):
    return GpuReading(
        device=device,
        used_bytes=used,
        process_bytes=process,
        utilization_pct=None,
        power_w=None,
        energy_mj=None,
        temperature_c=None,
        sm_clock_mhz=None,
        mem_clock_mhz=None,
    )


def test_peaks_load_and_run_are_apart():
    tracker = PeakTracker(100, None, NO_GPU)
    tracker.add(tree(700, anon=600, swap=50, mark=900), ())
    tracker.mark_loaded(was_reset=True)
    tracker.add(tree(710, anon=610, swap=0, mark=720), ())
    tracker.add(tree(650, anon=500, swap=0, mark=720), ())

    assert tracker.peaks() == Peaks(
        peak_rss_load_bytes=900,
        peak_rss_run_bytes=720,
        peak_anon_bytes=650,
        peak_memory_bytes=800,  # the mark of the load, less the host
        peak_vram_bytes=None,
        peak_vram_reason=NO_GPU,
    )


def test_peaks_mark_that_cannot_start_again_belongs_to_the_load():
    tracker = PeakTracker(0, None, NO_GPU)
    tracker.add(tree(700, mark=900), ())
    tracker.mark_loaded(was_reset=False)
    tracker.add(tree(710, mark=900), ())
    assert tracker.peaks().peak_rss_run_bytes == 710

    tracker.add(tree(710, mark=950), ())
    assert tracker.peaks().peak_rss_run_bytes == 950
    assert tracker.peaks().peak_rss_load_bytes == 900


def test_peaks_swap_counts_as_memory():
    tracker = PeakTracker(0, None, NO_GPU)
    tracker.add(tree(400, anon=400, swap=300, mark=500), ())

    assert tracker.peaks().peak_memory_bytes == 700


def test_peaks_sum_is_simultaneous():
    # Host and device peak at different times: 800 + 100, then 300 + 700. Never 800 + 700.
    tracker = PeakTracker(0, 0, None)
    tracker.add(tree(800), (gpu(100, 100),))
    tracker.add(tree(300), (gpu(700, 700),))

    assert tracker.peaks().peak_memory_bytes == 1000
    assert tracker.peaks().peak_vram_bytes == 700
    assert tracker.peaks().peak_vram_reason is None


def test_peaks_devices_are_summed():
    tracker = PeakTracker(0, 0, None)
    tracker.add(tree(100), (gpu(5000, 300), gpu(5000, 400, device=1)))

    assert tracker.peaks().peak_vram_bytes == 700
    assert tracker.peaks().peak_memory_bytes == 800


def test_peaks_driver_silent_about_processes_takes_growth_and_says_so():
    tracker = PeakTracker(0, 1000, None)
    tracker.add(tree(100), (gpu(1700),))

    assert tracker.peaks().peak_vram_bytes == 700
    assert tracker.peaks().peak_memory_bytes == 800
    assert tracker.peaks().peak_vram_reason == NOT_PER_PROCESS


def test_peaks_unreadable_device_makes_the_sum_unknown():
    tracker = PeakTracker(0, None, None)
    tracker.add(tree(100), (gpu(None),))

    peaks = tracker.peaks()
    assert peaks.peak_rss_load_bytes == 100
    assert peaks.peak_vram_bytes is None
    assert peaks.peak_memory_bytes is None
    assert peaks.peak_memory_reason == peaks.peak_vram_reason


def test_peaks_unknown_host_is_included_and_said():
    tracker = PeakTracker(None, None, NO_GPU)
    tracker.add(tree(100), ())

    assert tracker.peaks().peak_memory_bytes == 100
    assert tracker.peaks().peak_memory_reason == HOST_UNKNOWN


def test_peaks_engine_that_died_keeps_what_was_seen():
    tracker = PeakTracker(0, None, NO_GPU)
    tracker.add(tree(100, mark=300), ())
    tracker.add(TreeReading(), ())

    assert tracker.peaks().peak_rss_load_bytes == 300


def test_peaks_nothing_seen_is_unknown_with_a_reason():
    peaks = PeakTracker(0, None, NO_GPU).peaks()

    assert peaks.peak_memory_bytes is None
    assert peaks.peak_rss_run_bytes is None
    assert "no process" in peaks.peak_memory_reason
