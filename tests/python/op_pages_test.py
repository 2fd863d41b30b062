"""The Python example of each page in docs/ops runs, and prints the shapes that its last line announces."""
import contextlib
import io
import pathlib
import re

import pytest

PAGES = sorted(pathlib.Path(__file__).resolve().parent.parent.parent.joinpath("docs", "ops").glob("*.md"))


def example_of(page):
    found = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    return found[0] if found else None


EXAMPLES = {page.stem: example for page in PAGES if (example := example_of(page))}


def test_nearly_every_page_has_an_example():
    assert set(page.stem for page in PAGES) - set(EXAMPLES) == {"README", "End", "Wildcard"}


@pytest.mark.parametrize("kind", EXAMPLES)
def test_the_example_of_an_op_runs(kind):
    pytest.importorskip("numpy")
    code = EXAMPLES[kind]
    announced = code.strip().splitlines()[-1].split("  # ")[1]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, f"docs/ops/{kind}.md", "exec"), {})  # pylint: disable=exec-used
    assert printed.getvalue().strip() == announced
