"""The documentation that a worker serves at /ui/docs/: built by MkDocs as `make docs` does it, loaded from nowhere else."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from connect_py.app.services.memory_herder import MemoryHerder
from rest_api import RestConfig, create_app
from rest_api.routes.page import POLICY
from tests.paths import ROOT


def client(site: Path, **properties: str) -> TestClient:
    return TestClient(create_app(MemoryHerder(), RestConfig.from_worker(properties, {}), site))


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    built = tmp_path_factory.mktemp("site")
    subprocess.run([sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", built], cwd=ROOT, check=True, timeout=120)
    return built


@pytest.fixture
def worker(site) -> TestClient:
    return client(site)


def test_pages_scripts_pictures_and_fonts_are_served_with_the_pages_policy(worker, site):
    assert worker.get("/ui/docs", follow_redirects=False).headers["location"] == "docs/"
    start = worker.get("/ui/docs/")
    assert (start.status_code, start.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert start.text == (site / "index.html").read_text()
    policy = start.headers["content-security-policy"]
    assert policy == f"{POLICY}; font-src 'self'"
    assert worker.get("/ui/docs/sinks/spark.html").headers["content-security-policy"] == policy
    for path, kind in (
        ("js/place.js", "text/javascript; charset=utf-8"),
        ("search/search_index.json", "application/json"),
        ("pictures/ui-connectors.png", "image/png"),
        ("webfonts/fa-solid-900.woff2", "font/woff2"),
        ("monitoring/alerts.yml", "text/plain; charset=utf-8"),
    ):
        answer = worker.get(f"/ui/docs/{path}")
        assert (answer.status_code, answer.headers["content-type"]) == (200, kind), path
        assert answer.content == (site / path).read_bytes()
    assert worker.get("/ui/docs/index.html", headers={"If-None-Match": start.headers["etag"]}).status_code == 304
    for path in ("nothing.html", "sinks", "..%2f..%2fconfig.py", "%2e%2e/app.py"):
        assert worker.get(f"/ui/docs/{path}").status_code in (400, 404), path


def test_no_page_needs_what_the_policy_refuses(site):
    pages = list(site.rglob("*.html"))
    assert len(pages) > 50
    for path in pages:
        text = path.read_text()
        assert not re.search(r"<script(?![^>]*\bsrc=)|<style|<[^>]*\sstyle=|<[^>]*\son\w+=", text), path
        assert not re.search(r"<(?:script|link|img|iframe)[^>]*(?:src|href)=[\"']?(?:https?:)?//", text), path
    assert not [path for path in site.rglob("*") if path.suffix in (".map", ".ttf", ".py")]


def test_each_page_finds_the_root_of_the_site(site):
    for name, base in (("tutorial.html", "."), ("sinks/spark.html", ".."), ("evidence/lakehouse.html", "..")):
        assert f'<script src="{base}/js/place.js"></script>' in (site / name).read_text()
    assert "document.currentScript.src" in (site / "js" / "place.js").read_text()


def test_without_the_site_a_worker_says_how_to_build_it(tmp_path):
    answer = client(tmp_path / "none").get("/ui/docs/")
    assert answer.status_code == 404
    assert "`make docs` builds it" in answer.json()["message"]


def test_without_the_page_there_is_no_documentation_either(site):
    assert client(site, **{"rest.ui": "off"}).get("/ui/docs/").status_code == 404
    assert client(site, **{"rest.ui": "read-only"}).get("/ui/docs/").status_code == 200
