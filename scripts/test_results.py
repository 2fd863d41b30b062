#!/usr/bin/env python3
"""Summarises a run of the tests: failures with their output, skipped tests with the reason, and the counts on the last line.

    test_results.py JUNIT SHARDS [PYTEST]   JUNIT: the file of ctest --output-junit
                                            SHARDS: the folder with NAME.xml of each run of a GoogleTest program
                                            PYTEST: the file of pytest --junit-xml; exists only if Python tests ran

A ctest test is one process, in which a GoogleTest program runs many tests: SHARDS/NAME.xml lists those of NAME. A process
without such a file counts as one test. Exits with 1 if a test failed or none ran.
"""
import collections
import pathlib
import re
import sys
import xml.etree.ElementTree as ElementTree

Result = collections.namedtuple("Result", "name verdict text")  # verdict: passed, failed or skipped; text: how, or why


def gtest_results(file, program):
    """Yields a Result per test in a GoogleTest report; disabled tests do not count."""
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
    """Returns the output of a program from the start of its last test."""
    output = case.findtext("system-out") or ""
    return output[max(output.rfind("[ RUN      ]"), 0):][-4000:]


def results_of(case, shards):
    """Returns the results of one process that ctest ran."""
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
    """Yields a Result per Python test; a file that could not be collected counts as a failed test."""
    for case in ElementTree.parse(file).getroot().iter("testcase"):
        name = f"{case.get('classname')}.{case.get('name')} (Python)"
        failures = [child.text or child.get("message", "") for child in case if child.tag in ("failure", "error")]
        skipped = case.find("skipped")
        if failures:
            yield Result(name, "failed", "\n".join(failures))
        elif skipped is not None:
            whole_file = re.search(r"Skipped: (.*?)['\")]*$", (skipped.text or "").strip())
            yield Result(name, "skipped", whole_file[1] if whole_file else " ".join(skipped.get("message", "").split()))
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
