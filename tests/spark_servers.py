"""Spark on other processes than the task's, as pyspark ships it: a standalone cluster, a Spark Connect server. For tests."""

from __future__ import annotations

from pathlib import Path

from connect_py.app.services.process import Service, free_port, is_listening
from spark_sink.spark import jars
from spark_sink.spark.settings import EXTENSIONS

_ENV = {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_MEMORY": "256m", "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}


def _script(name: str) -> str:
    return str(jars.pyspark_home() / "bin" / name)


class Cluster:
    """A master and one worker with room for two executors of one core each.

    Attributes:
        master: its address, as ``lakehouse.spark.master``.
    """

    def __init__(self, folder: Path) -> None:
        port = free_port()
        self.master = f"spark://127.0.0.1:{port}"
        package = "org.apache.spark.deploy"
        ports = ["--webui-port", str(free_port())]
        command = [_script("spark-class"), f"{package}.master.Master", "--host", "127.0.0.1", "--port", str(port), *ports]
        self._master = Service("spark-master", command, folder / "master.log", env=_ENV)
        self._master.wait_ready(lambda: is_listening(port))
        ports = ["--webui-port", str(free_port())]
        command = [_script("spark-class"), f"{package}.worker.Worker", "--host", "127.0.0.1", *ports, "--cores", "2", "--memory", "2g"]
        self._worker = Service("spark-worker", [*command, "--work-dir", str(folder / "work"), self.master], folder / "worker.log", env=_ENV)
        self._worker.wait_ready(lambda: "Successfully registered" in self._worker.log_tail(1000))

    def stop(self) -> None:
        """Both; the worker ends its executors."""
        self._worker.stop()
        self._master.stop()


class ConnectServer:
    """A Spark Connect server on two cores.

    Args:
        extensions: whether it has the formats' extensions.

    Attributes:
        url: as ``lakehouse.spark.remote``.
    """

    def __init__(self, folder: Path, *, extensions: bool = True) -> None:
        self._folder, self._extensions, self._port = folder, extensions, free_port()
        self.url = f"sc://127.0.0.1:{self._port}"
        self._start()

    def _start(self) -> None:
        libraries = [str(jar) for jar in jars.resolve(jars.SINK_JARS, jars.cached(jars.SINK_JARS, "spark-sink"))]
        conf = {
            "spark.connect.grpc.binding.port": str(self._port),
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.ui.enabled": "false",
            "spark.sql.warehouse.dir": str(self._folder / "warehouse-of-nobody"),
            **({"spark.sql.extensions": ",".join(EXTENSIONS.values())} if self._extensions else {}),
        }
        command = [_script("spark-submit"), "--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "--master", "local[2]"]
        command += ["--driver-java-options", "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m"]
        command += ["--jars", ",".join(libraries), *(part for key, value in conf.items() for part in ("--conf", f"{key}={value}"))]
        self.service = Service(
            "spark-connect",
            [*command, "spark-internal"],
            self._folder / "connect.log",
            env={"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_MEMORY": "1g"},
        )
        self.service.wait_ready(lambda: is_listening(self._port), 240)

    def restart(self) -> None:
        """Killed, and started again at the same address: all sessions are lost."""
        self.service.kill()
        self._start()

    def stop(self) -> None:
        """End it."""
        self.service.stop()
