"""The results that LIOB ships: measured, complete, readable by this very version, and nobody's secrets."""

import re

from liob_core.config import SAMPLE_DATABASE
from liob_core.store import schema
from liob_core.store.database import query, read


def test_sample_has_the_newest_schema() -> None:
    with read(SAMPLE_DATABASE) as con:
        assert schema.current_version(con) == schema.newest_version(), "export the sample run anew"


def test_sample_is_the_real_ladder_with_its_machine() -> None:
    rows = query(SAMPLE_DATABASE, "SELECT * FROM results ORDER BY bpw DESC")
    assert rows["variant"].tolist() == ["F16", "Q8_0", "Q4_K_M", "Q2_K"]
    # The ladder that llama.cpp's own quantizer makes of this model, to the byte.
    assert rows["file_sha256"].str[:8].tolist() == ["a269e318", "f7933c71", "27e14967", "c7c9a27b"]
    assert set(rows["engine"]) == {"embedded"}
    assert rows["n_blocks"].min() >= 3
    assert rows["n_checked"].min() >= 100
    assert rows["decode_tps"].notna().all()
    machine = query(SAMPLE_DATABASE, "SELECT * FROM machines")
    assert len(machine) == 1
    assert machine["cpu_name"].notna().all()


def test_sample_holds_no_path_of_the_machine_it_was_made_on() -> None:
    text = SAMPLE_DATABASE.read_bytes()
    assert not re.search(rb"/(home|root|Users|tmp)/[a-z]", text)
