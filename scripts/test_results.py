#!/usr/bin/env python3
"""Sums up a run of the tests: what failed and how, what was skipped and why, and on the last line how many there were.

    test_results.py JUNIT SHARDS [PYTEST]   JUNIT: what ctest --output-junit wrote
                                            SHARDS: the folder in which each run of a GoogleTest program left NAME.xml
                                            PYTEST: what pytest --junit-xml wrote; it is there only if Python's tests ran

A run of ctest is one process, in which a GoogleTest program runs many tests: those of NAME are counted from SHARDS/NAME.xml. What
has no such file is one test. Exits with 1 where a test failed or none ran.
"""
import collections
import pathlib
import re
import sys
import xml.etree.ElementTree as ElementTree

Result = collections.namedtuple("Result", "name verdict text")  # verdict: passed, failed or skipped; text: how, or why


def gtest_results(file, program):
    """Of each test in a GoogleTest report; disabled tests, which do not run, are none."""
    for case in ElementTree.parse(file).getroot().iter("testcase"):
        if case.get("status") == "notrun":
            continue
        name = f"{case.get('classname')}.{case.get('name')} ({program})"
        failures = [failure.get("message") for failure in case.findall("failure")]
        skipped = case.find("skipped")
        if failures:
            yield Result(name, "failed", "\n".join(failures))
        elif skipped is not None:
            place_and_reason = skipped.get("message", "").split("\n", 1)
            yield Result(name, "skipped", " ".join(place_and_reason[-1].split()))
        else:
            yield Result(name, "passed", "")


def unfinished(case):
    """What a program wrote after it had begun its last test."""
    output = case.findtext("system-out") or ""
    return output[max(output.rfind("[ RUN      ]"), 0):][-4000:]


def results_of(case, shards):
    """The results of one process that ctest ran."""
    name = case.get("name")
    report = shards / f"{name}.xml"
    failed = case.find("failure") is not None or case.get("status") == "fail"
    if case.find("skipped") is not None or case.get("status") in ("notrun", "disabled"):
        said = re.search(r"^skipped: (.*)$", case.findtext("system-out") or "", re.MULTILINE)
        yield Result(name, "skipped", said[1] if said else case.find("skipped").get("message", "no reason given"))
    elif not report.exists():
        yield Result(name, "failed" if failed else "passed", unfinished(case) if failed else "")
    else:
        inner = list(gtest_results(report, name))
        yield from inner
        if failed and not any(result.verdict == "failed" for result in inner):
            yield Result(name, "failed", unfinished(case))


def pytest_results(file):
    """Of each Python test; a file that could not be collected is one that failed."""
    for case in ElementTree.parse(file).getroot().iter("testcase"):
        name = f"{case.get('classname')}.{case.get('name')} (Python)"
        failures = [child.text or child.get("message", "") for child in case if child.tag in ("failure", "error")]
        skipped = case.find("skipped")
        if failures:
            yield Result(name, "failed", "\n".join(failures))
        elif skipped is not None:
            yield Result(name, "skipped", " ".join(skipped.get("message", "no reason given").split()))
        else:
            yield Result(name, "passed", "")


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    shards = pathlib.Path(sys.argv[2])
    results = [result for case in ElementTree.parse(sys.argv[1]).getroot().findall("testcase") for result in results_of(case, shards)]
    if len(sys.argv) == 4 and pathlib.Path(sys.argv[3]).exists():
        results += pytest_results(sys.argv[3])
    count = collections.Counter(result.verdict for result in results)
    reasons = collections.Counter(result.text for result in results if result.verdict == "skipped")
    for result in results:
        if result.verdict == "failed":
            print(f"test: FAILED {result.name}\n{result.text}\n")
    if reasons:
        print(f"test: {count['skipped']} of {len(results)} tests were skipped:")
    for reason, times in reasons.most_common():
        print(f"test: {times:6}  {reason}")
    print(f"{count['passed']} passed, {count['failed']} failed, {count['skipped']} skipped")
    return 1 if count["failed"] or not results else 0


if __name__ == "__main__":
    sys.exit(main())
