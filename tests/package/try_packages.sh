#!/bin/sh
# Tries lamina's Debian packages in a bare root (scripts/clean-room --packages), as root. $1 is the step:
#   everything   installs all packages in DIR, uses each, leaves a program and a model in DIR/made, and removes the packages
#   runtime      installs the runtime's package alone, and runs that program and model
# $2 is DIR, the folder with the packages. In /models there may be models, and the digests of their results, which the runtime
# alone must have too.
set -eu
step=$1 dir=$2
export DEBIAN_FRONTEND=noninteractive

say() { printf 'try: %s\n' "$*"; }
fail() { say "$*" >&2; exit 1; }
install() { apt-get install -y -qq --no-install-recommends "$@" >/dev/null; }

# Removes packages that match, and checks that nothing of lamina remains.
remove() {
  # shellcheck disable=SC2046
  apt-get purge -y -qq $(dpkg-query -W -f '${Package}\n' '*lamina*') >/dev/null
  left=$(find / -xdev -path "$dir" -prune -o -path /models -prune -o -path /lamina -prune -o -path /proc -prune -o -name '*lamina*' -print)
  [ -z "$left" ] || fail "after removal there is still: $left"
  say "removed, and nothing is left"
}

everything() {
  install "$dir"/*.deb g++ cmake make pkg-config python3-numpy libcpp-httplib-dev
  mkdir -p "$dir/made"
  say "the tool: $(lamina --version | head -1)"
  examples=/usr/share/doc/liblamina-dev/examples
  lamina replay --engine cpu --check $examples/graphs/*.json
  lamina export $examples/graphs/layer_norm.json -o "$dir/made/model.lamina"
  zcat /usr/share/man/man1/lamina.1.gz | grep -q lamina || fail "the manual page is empty"

  say "examples in C++ and C, with find_package"
  cmake -S $examples -B /tmp/examples >/dev/null && cmake --build /tmp/examples
  ctest --test-dir /tmp/examples --output-on-failure
  cmake -S $examples/runtime -B /tmp/runtime >/dev/null && cmake --build /tmp/runtime
  cp /tmp/runtime/run_model "$dir/made"
  "$dir/made/run_model" "$dir/made/model.lamina" | tee "$dir/made/expected"
  # shellcheck disable=SC2046
  g++ -std=c++20 -O2 "$dir/programs/result_digest.cpp" $(pkg-config --cflags --libs lamina-runtime) -o "$dir/made/result_digest"
  say "the server, under load"
  cmake -S $examples/serve -B /tmp/serve >/dev/null && cmake --build /tmp/serve
  python3 -B $examples/serve/make_model.py /tmp/serve/model
  lamina export /tmp/serve/model/graph.json -o /tmp/serve/model.lamina --weights /tmp/serve/model --shapes 0:1..16x256
  python3 -B $examples/serve/load.py /tmp/serve/serve /tmp/serve/model.lamina
  say "an example with pkg-config"
  # shellcheck disable=SC2046
  g++ -std=c++20 $examples/cpp/errors.cpp $(pkg-config --cflags --libs lamina) -o /tmp/errors && /tmp/errors

  say "Python"
  python3 -c '
import lamina, numpy
x = numpy.random.default_rng(1).standard_normal((4, 768), numpy.float32)
y = lamina.layer_norm(x)
assert abs(y.mean()) < 1e-6 and abs(y.std() - 1) < 1e-3, (y.mean(), y.std())
model = lamina.load("/tmp/serve/model.lamina")
print("lamina", lamina.__version__, "of Python normalised", y.shape, "and ran a model", model(x[:2, :256].copy()).shape)'
  rm -rf /tmp/examples /tmp/runtime /tmp/serve
  remove
}

run_models() {
  "$dir/made/result_digest" --times /models/*.lamina >"$dir/made/digests"
  cmp "$dir/made/digests" /models/expected.txt || fail "results of models have other bits"
  say "$(wc -l <"$dir/made/digests") results of $(find /models -name '*.lamina' | wc -l) models have the expected bits"
}

runtime() {
  for program in g++ c++ cc python3 lamina; do
    if command -v $program >/dev/null; then fail "$program is there before anything is installed"; fi
  done
  install "$dir"/liblamina-runtime[0-9]*.deb
  for name in 'libLLVM*' 'libdnnl*' 'liblamina.so*' 'python3*'; do
    found=$(find /usr/lib /usr/bin -name "$name")
    [ -z "$found" ] || fail "beside the runtime there is $found"
  done
  "$dir/made/run_model" "$dir/made/model.lamina" | tee "$dir/made/seen"
  [ "$(grep outputs: "$dir/made/seen")" = "$(grep outputs: "$dir/made/expected")" ] || fail "the results differ"
  if [ -d /models ]; then run_models; fi
  say "$(dpkg-query -W -f '${Package} ${Version}, ${Installed-Size} KB installed' 'liblamina-runtime*')"
  remove
}

apt-get update -qq
"$step"
