"""``flaot completion``: how to switch on tab completion."""

from __future__ import annotations

import click

from flaot.cli import console

LINES = {
    "bash": ("~/.bashrc", 'eval "$(_FLAOT_COMPLETE=bash_source flaot)"'),
    "zsh": ("~/.zshrc", 'eval "$(_FLAOT_COMPLETE=zsh_source flaot)"'),
    "fish": ("~/.config/fish/completions/flaot.fish", "_FLAOT_COMPLETE=fish_source flaot | source"),
}


@click.command("completion", epilog="Example:  flaot completion zsh")
@click.argument("shell", type=click.Choice(list(LINES)), default="bash")
def command(shell: str) -> None:
    """Say how to switch on tab completion for SHELL (bash, zsh or fish)."""
    file, line = LINES[shell]
    console.out(f"# add this line to {file}:")
    console.out(line)
