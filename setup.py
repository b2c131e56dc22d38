"""Only the optional C extension: everything else about the package stands in pyproject.toml."""

from setuptools import Extension, setup

setup(
    ext_modules=[
        Extension(
            "oncelog.records._kernel",
            ["src/oncelog/records/_kernel.c"],
            extra_compile_args=["-O2"],
            # Without a compiler the install goes on: the same walk is there in Python.
            optional=True,
        )
    ]
)
