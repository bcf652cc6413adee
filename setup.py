"""Which packages an installation of this checkout has; all else is in pyproject.toml.

A wheel or source archive of `penstock` holds that package alone: `.ci/dist` packs the services into
a distribution of their own, below `penstock_mesh`. An editable install has all folders of the
checkout as they are.
"""

import sys

from setuptools import find_packages, setup

CLIENT = ("penstock", "penstock.*")
SERVICES = ("gateway*", "schemas*", "services*", "spark_jobs*")

editable = "editable_wheel" in sys.argv
setup(packages=find_packages(include=[*CLIENT, *(SERVICES if editable else ())]))
