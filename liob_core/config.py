"""Settings: `LIOB_*` environment over `liob.toml` over defaults.

Read once at an entry point and passed on as values.
"""

import os
import tempfile
from pathlib import Path

from pydantic import Field, ValidationError
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from liob_core.errors import UsageError

PROJECT_DIR = Path(__file__).resolve().parent.parent
SHIPPED_DIR = PROJECT_DIR / "data"
SAMPLE_DATABASE = SHIPPED_DIR / "sample.duckdb"
SHIPPED_SUITES = SHIPPED_DIR / "suites"


def _machine_dir() -> Path:
    """The one folder that all users and data folders of this machine share, for the run lock."""
    if os.name == "nt":
        return Path(os.environ.get("PROGRAMDATA", tempfile.gettempdir())) / "liob"
    return Path("/tmp/liob")  # noqa: S108 - the same for every user, unlike TMPDIR


class Settings(BaseSettings):
    """Where LIOB keeps what a user makes, and the defaults of a run."""

    model_config = SettingsConfigDict(
        env_prefix="LIOB_", toml_file=os.environ.get("LIOB_CONFIG", "liob.toml"), extra="forbid"
    )

    data_dir: Path = SHIPPED_DIR
    machine_dir: Path = Field(default_factory=_machine_dir)
    share: Path | None = None
    config: Path | None = None  # LIOB_CONFIG: another place for liob.toml
    threads: int | None = Field(default=None, ge=1, le=1024)
    monitor_hz: float = Field(default=10.0, gt=0, le=100)
    allow_code: bool = False  # checks may run code from answers, within limits

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Environment first, then `liob.toml`."""
        return init_settings, env_settings, TomlConfigSettingsSource(settings_cls)

    @property
    def database(self) -> Path:
        """The database of record."""
        return self.data_dir / "liob.duckdb"

    @property
    def runs_dir(self) -> Path:
        """One folder per run: its spec, journal, readings and logs."""
        return self.data_dir / "runs"

    @property
    def models_dir(self) -> Path:
        """Model files that LIOB fetched or made."""
        return self.data_dir / "models"

    @property
    def cache_dir(self) -> Path:
        """What can be computed again: digests and headers."""
        return self.data_dir / "cache"

    def environment(self) -> dict[str, str]:
        """This process's environment with these folders in it, for a child that must use the same."""
        return {
            **os.environ,
            "LIOB_DATA_DIR": str(self.data_dir.resolve()),
            "LIOB_MACHINE_DIR": str(self.machine_dir.resolve()),
        }


def load_settings() -> Settings:
    """The settings in force; a bad value is told by name."""
    try:
        return Settings()
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"]) or "liob.toml"
        raise UsageError(
            f"Setting {name!r} is not usable: {first['msg']}. Check LIOB_{name.upper()} and liob.toml."
        ) from error
