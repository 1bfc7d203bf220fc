"""A constraint has one number: in docs/HQuant.md, in the verifier's comment, and
in a test named after it. Checks that the three sets are the same for every op that
the document has numbers for."""

import glob
import os
import re
import sys

root = sys.argv[1]


def numbers(pattern, *parts):
    found = set()
    for path in glob.glob(os.path.join(root, *parts)):
        with open(path) as file:
            found |= set(re.findall(pattern, file.read()))
    return found


def op(number):
    return number.rsplit("_c", 1)[0]


NUMBER = r"([a-z]+(?:_[a-z]+)*_c[0-9]+)"
spec = numbers(r"\(`" + NUMBER + r"`\)", "docs", "HQuant.md")
comments = numbers(r"(?m)^ *//+ (.*)$", "lib", "Dialect", "HQuant", "IR", "*.cpp")
code = {n for line in comments for n in re.findall(NUMBER, line)}
tests = numbers(r"@" + NUMBER, "test", "Dialect", "HQuant", "*.mlir")

ops = {op(number) for number in spec}
wrong = [] if ops else ["expected constraints in docs/HQuant.md, got none"]
for name, found in (("the verifiers", code), ("the tests", tests)):
    found = {number for number in found if op(number) in ops}
    wrong += [f"{n} is in docs/HQuant.md, not in {name}" for n in sorted(spec - found)]
    wrong += [f"{n} is in {name}, not in docs/HQuant.md" for n in sorted(found - spec)]
print("\n".join(wrong))
sys.exit(bool(wrong))
