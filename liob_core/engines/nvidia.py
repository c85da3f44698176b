"""Whether this machine has a graphics card that an engine could use."""


def has_nvidia_card() -> bool:
    """Whether the NVIDIA driver reports a device."""
    import pynvml  # noqa: PLC0415

    try:
        pynvml.nvmlInit()
        try:
            return int(pynvml.nvmlDeviceGetCount()) > 0
        finally:
            pynvml.nvmlShutdown()
    except pynvml.NVMLError:
        return False
