"""The page of an explanation in a browser, by keyboard. Skipped where there is no Chromium."""
import html
import json
import re
import shutil
import subprocess

import pytest

import lamina

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")

# Presses keys in sequence on the focused element and writes the value of `tell` into the page's title.
DRIVER = """
<script>
for (const key of %s) {
  const target = document.activeElement || document.body;
  if (typeof key === "string") target.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
  else { target.value = key[0]; target.dispatchEvent(new Event("input")); }
}
document.title = "told: " + JSON.stringify((() => { %s })());
</script>
</body>"""
STATE = """
const panel = document.getElementById("panel"), focus = document.activeElement;
return [focus.getAttribute("aria-label") || focus.id || focus.tagName.toLowerCase(), panel.hidden ? "" : panel.querySelector("h2").textContent,
        document.querySelectorAll(".op.hit").length, document.querySelector("#world").getAttribute("transform")];
"""


def chain(length):
    g = lamina.Graph()
    x = g.input((4, 16))
    for i in range(length):
        x = g.op("LayerNorm", [x], use_affine=False, keep_stats=False, name=f"norm{i}") if i % 5 == 2 else g.op("ReLU", [x], name=f"relu{i}")
    return lamina.explain(g).text(compile=False)


def pressed(page, folder, keys, tell=STATE):
    """What the page tells after these keys, the first op having the focus; a list among them is typed into what has the focus."""
    start = "document.querySelector('.op').focus();"
    text = page.replace("</body>", f"<script>{start}</script>" + DRIVER % (keys, tell))
    file = folder / "page.html"
    file.write_text(text, encoding="utf-8")
    made = subprocess.run([CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1200,800", "--virtual-time-budget=3000",
                           f"--user-data-dir={folder / 'profile'}", "--dump-dom", file.as_uri()], capture_output=True, text=True, timeout=120)
    return json.loads(html.unescape(re.search("<title>told: (.*?)</title>", made.stdout).group(1)))


def test_arrows_go_from_op_to_op_and_enter_tells(tmp_path):
    focus, title, _, _ = pressed(chain(10), tmp_path, ["ArrowDown", "ArrowDown", "ArrowDown", "ArrowUp", "Enter"])
    assert title == "LayerNorm “norm2”" and focus == "h2"


def test_escape_goes_back_to_the_picture(tmp_path):
    focus, title, _, _ = pressed(chain(10), tmp_path, ["ArrowDown", "p", "Escape", "ArrowDown"])
    assert title == "" and focus.startswith('op 2 LayerNorm "norm2"')


def test_slash_searches_among_a_thousand_ops(tmp_path):
    focus, title, hits, _ = pressed(chain(1000), tmp_path, ["/", ["norm7"], "Enter"])
    assert hits == 23 and title == "LayerNorm “norm7”"  # norm7, norm72, norm77, norm702, ...
    assert focus.startswith('op 7 LayerNorm "norm7"')


def test_plus_minus_and_nought_change_the_scale(tmp_path):
    def scale(keys):
        return float(re.search(r"scale\((.*)\)", pressed(chain(10), tmp_path, keys)[3]).group(1))

    assert scale(["+", "+"]) > scale([]) > scale(["-"])
    assert scale(["+", "+", "0"]) == pytest.approx(scale(["0"]))


def test_every_op_has_a_label_and_one_tab_stop(tmp_path):
    labels, stops, roles = pressed(chain(50), tmp_path, ["ArrowDown"], """
        const ops = [...document.querySelectorAll(".op")];
        return [ops.filter((op) => op.getAttribute("aria-label")).length, ops.filter((op) => op.tabIndex === 0).length,
                new Set(ops.map((op) => op.getAttribute("role"))).size];""")
    assert (labels, stops, roles) == (50, 1, 1)
