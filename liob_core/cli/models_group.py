"""The commands under `models`: the Hub's, and those of Ollama."""

from liob_core.cli import ollama
from liob_core.cli.hub import models_app

models_app.command()(ollama.register)
models_app.command()(ollama.remove)
