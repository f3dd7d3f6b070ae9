"""The page at /docs: the API as a list, drawn by the browser from /openapi.json. It loads nothing from elsewhere."""

from __future__ import annotations

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Kafka Connect REST API</title>
<style>
 body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem }
 td { padding: .2rem .8rem .2rem 0; vertical-align: top } code { white-space: nowrap } h2 { margin-bottom: .2rem }
</style></head><body>
<h1>Kafka Connect REST API</h1>
<p>Every answer is JSON; every refusal is <code>{"error_code": …, "message": …}</code>. The description for tools is
<a href="/openapi.json">/openapi.json</a>.</p>
<div id="api">…</div>
<script>
fetch('/openapi.json').then(r => r.json()).then(api => {
  const root = document.getElementById('api'), groups = {};
  root.textContent = '';
  for (const [path, verbs] of Object.entries(api.paths))
    for (const [verb, what] of Object.entries(verbs))
      (groups[(what.tags || ['other'])[0]] ||= []).push([verb.toUpperCase(), path, what.summary || '']);
  for (const [name, rows] of Object.entries(groups)) {
    const title = document.createElement('h2'), table = document.createElement('table');
    title.textContent = name;
    for (const row of rows) {
      const tr = table.insertRow();
      row.forEach((text, i) => {
        const cell = tr.insertCell(), part = i < 2 ? cell.appendChild(document.createElement('code')) : cell;
        part.textContent = text;
      });
    }
    root.append(title, table);
  }
});
</script></body></html>
"""
