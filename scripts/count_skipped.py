#!/usr/bin/env python3
"""Counts the skipped tests of a ctest run by the reason that each gave.

    count_skipped.py RESULTS      RESULTS: what ctest --output-junit wrote
"""
import collections
import re
import sys
import xml.etree.ElementTree as ElementTree


def reason_of(case):
    """The lines between gtest's place of the skip and its closing line; of a test that is no gtest, ctest's own word."""
    output = case.findtext("system-out") or ""
    found = re.search(r": Skipped\n(.*?)\n*\[  SKIPPED \]", output, re.DOTALL)
    return " ".join(found.group(1).split()) if found else case.find("skipped").get("message", "no reason given")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    cases = ElementTree.parse(sys.argv[1]).getroot().findall("testcase")
    reasons = collections.Counter(reason_of(case) for case in cases if case.find("skipped") is not None)
    print(f"test: {sum(reasons.values())} of {len(cases)} tests were skipped" + (":" if reasons else ""))
    for reason, count in reasons.most_common():
        print(f"test: {count:6}  {reason}")


if __name__ == "__main__":
    main()
