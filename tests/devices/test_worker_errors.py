"""What a worker says of an exception."""

from __future__ import annotations

from presage.devices.worker.main import summary

COMMAND = "nvcc -MD -Werror=all " + "-isystem /some/folder/include " * 20 + "-c cuda.cu -o cuda.o"


def test_of_an_extension_that_was_not_built_what_the_compiler_says() -> None:
    error = RuntimeError(
        f"Error building extension 'add': [1/3] {COMMAND}\nFAILED: cuda.o \n{COMMAND}\n"
        'cuda.cu(7): error: identifier "undefined" is undefined\n\n1 error detected in the compilation of "cuda.cu".\n'
        "ninja: build stopped: subcommand failed.\n"
    )
    assert summary(error).splitlines() == [
        "Error building extension 'add'",
        'cuda.cu(7): error: identifier "undefined" is undefined',
    ]


def test_of_anything_else_its_name_and_its_words() -> None:
    assert summary(RuntimeError("broke: here")) == "RuntimeError: broke: here"
    assert summary(RuntimeError("Error building extension 'add'")) == "RuntimeError: Error building extension 'add'"
