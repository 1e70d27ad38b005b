"""One JVM for all tests of the engine."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.spark.harness import Replica

from tandem_core.model.pipeline import Pipeline
from tandem_core.model.spec import Spark
from tandem_runtime.spark.jvm.launch import SparkDriver, start_driver


@pytest.fixture(scope="session")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkDriver]:
    driver = start_driver(Spark(cores=2), tmp_path_factory.mktemp("driver") / "scratch")
    yield driver
    driver.stop()


@pytest.fixture
def replica(driver: SparkDriver, tmp_path: Path) -> Iterator[Callable[..., Replica]]:
    """Makes replicas, each with directories of its own, and stops them."""
    session: SparkSession = driver.session
    made: list[Replica] = []

    def make(pipeline: Pipeline, checkpoint: Path | None = None, base: int = 0) -> Replica:
        place = tmp_path / f"replica-{len(made)}"
        made.append(Replica(session, pipeline, place, checkpoint or place / "spark", base))
        return made[-1]

    yield make
    for one in made:
        one.stop()
