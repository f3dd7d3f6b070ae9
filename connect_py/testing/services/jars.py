"""The broker's jars, resolved from Maven Central by the Ivy that ships inside pyspark.

They are fetched once, into `<cache>/kafka-<version>`; `$CONNECT_PY_MAVEN_URL` names another Maven repository than Central.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

from connect_py.testing.services.cache import cache_folder, make_once
from connect_py.testing.services.java import find_java
from connect_py.testing.services.process import ServiceError

KAFKA_VERSION = "4.3.1"
LOG4J_VERSION = "2.25.4"

MAVEN_CENTRAL = "https://repo1.maven.org/maven2/"

SETTINGS = """<ivysettings>
  <settings defaultResolver="maven"/>
  <caches defaultCacheDir="{cache}"/>
  <resolvers><ibiblio name="maven" m2compatible="true" root="{root}"/></resolvers>
</ivysettings>
"""

MODULE = f"""<ivy-module version="2.0">
  <info organisation="connect-py" module="broker"/>
  <configurations><conf name="default"/></configurations>
  <dependencies defaultconf="default->master,runtime">
    <dependency org="org.apache.kafka" name="kafka_2.13" rev="{KAFKA_VERSION}"/>
    <dependency org="org.apache.logging.log4j" name="log4j-slf4j-impl" rev="{LOG4J_VERSION}"/>
  </dependencies>
</ivy-module>
"""

#: Tells a person what happens during a long step; gets one line.
Progress = Callable[[str], None]


def silent(line: str) -> None:
    """Progress that nobody reads."""


def ivy_jar() -> Path:
    """The Ivy that pyspark brings.

    Raises:
        ServiceError: pyspark is not installed.
    """
    spec = importlib.util.find_spec("pyspark")
    found = sorted(Path(spec.origin).parent.glob("jars/ivy-*.jar")) if spec and spec.origin else []
    if not found:
        raise ServiceError(
            "The Ivy inside pyspark fetches the broker's jars, and pyspark is missing: pip install 'connect-py-worker[demo]'"
        )
    return found[-1]


def kafka_jars(progress: Progress = silent) -> Path:
    """A folder with the broker's jars; fetched when it is not there (44 MB).

    Raises:
        ServiceError: no Java, no pyspark, or the repository does not answer.
    """
    return make_once(cache_folder() / f"kafka-{KAFKA_VERSION}", lambda folder: _fetch(folder, progress))


def _fetch(folder: Path, progress: Progress) -> None:
    java, ivy = find_java(), ivy_jar()
    root = os.environ.get("CONNECT_PY_MAVEN_URL") or MAVEN_CENTRAL
    progress(f"fetching Kafka {KAFKA_VERSION} from {root} (44 MB, once)")
    settings, module = folder / "settings.xml", folder / "ivy.xml"
    settings.write_text(SETTINGS.format(cache=cache_folder() / "ivy", root=root))
    module.write_text(MODULE)
    command = [java, "-cp", str(ivy), "org.apache.ivy.Main", "-settings", str(settings), "-ivy", str(module), "-types", "jar", "bundle"]
    command += ["-retrieve", f"{folder}/[artifact]-[revision](-[classifier]).[ext]"]
    lines: list[str] = []
    fetched = 0
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        for line in process.stdout or ():
            lines.append(line.rstrip())
            done = re.search(r"\[SUCCESSFUL \].*!([^ (]+)", line)
            if done:
                fetched += 1
                if fetched % 10 == 0:
                    progress(f"{fetched} jars, now {done[1]}")
    settings.unlink()
    module.unlink()
    if process.returncode != 0 or not list(folder.glob("kafka_2.13-*.jar")):
        tail = "\n".join(line for line in lines if line.strip())[-1500:]
        raise ServiceError(f"Fetching the broker's jars from {root} failed; the end of Ivy's output:\n{tail}")
