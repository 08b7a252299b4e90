#!/bin/sh
# Builds the fuzz targets and runs each for SECONDS with its corpus, which it then minimises.
#
#     Tests/Fuzz/run.sh 600                 all of them
#     Tests/Fuzz/run.sh 600 Chunks          one
#     Tests/Fuzz/run.sh 0                   only builds them
#
# An input that fails is left in .build-fuzz/NAME/; run the binary with it to see it again.
set -eu
seconds=${1:?usage: run.sh SECONDS [NAME...]}
shift
[ $# -gt 0 ] || set -- RequestHead ResponseHead Chunks Http2Server Http2Client Configuration Credentials TokenResponse \
    StoredRecord CacheFields RedisReply EventStream ContentRange Har TraceContext TunnelBytes ProxyHeader Placeholders Imports \
    CaptureFilter CapturedMessages CaptureRecords FilePaths JsonEdits StickyToken ClientFields AcmeAnswers MessageSignature OidcLogin \
    ContentCodings RecordJournal Scripts CalloutAnswers FoundServices Approvals DnsQueries

cd "$(dirname "$0")/../.."
export HTTPWARE_FUZZ=1 SWIFT_BACKTRACE=enable=no
# Release, because a debug build is twenty times slower; testable, because the codec is internal.
build() {
    swift build --scratch-path .build-fuzz -c release --sanitize=address \
        -Xswiftc -sanitize=fuzzer -Xswiftc -enable-testing "$@"
}
for name in "$@"; do build --product "Fuzz$name"; done
[ "$seconds" -gt 0 ] || exit 0
binaries=$(build --show-bin-path)

for name in "$@"; do
    corpus=Tests/Fuzz/corpus/$name
    dict=Tests/Fuzz/http.dict
    longest=700
    case $name in
    Configuration | FoundServices) dict=Tests/Fuzz/Configuration.dict longest=1500 ;;
    Credentials) dict=Tests/Fuzz/Credentials.dict longest=3000 ;;
    Http2*) dict=Tests/Fuzz/http2.dict ;;
    CacheFields) dict=Tests/Fuzz/cache.dict ;;
    Imports) dict=Tests/Fuzz/imports.dict longest=3000 ;;
    EventStream | ContentRange | Har | CapturedMessages | CaptureRecords | JsonEdits | CalloutAnswers | Approvals) dict=Tests/Fuzz/client.dict longest=2000 ;;
    RecordJournal) longest=1500 ;;
    Scripts) dict=Tests/Fuzz/lua.dict longest=2000 ;;
    CaptureFilter) dict=Tests/Fuzz/filter.dict ;;
    esac
    work=.build-fuzz/$name
    mkdir -p "$work/found" "$work/merged"
    "$binaries/Fuzz$name" -max_total_time="$seconds" -max_len=$longest -timeout=5 -dict="$dict" \
        -artifact_prefix="$work/" -print_final_stats=1 "$work/found" "$corpus" 2>"$work/log" ||
        { tail -40 "$work/log"; exit 1; }
    # The fewest files that cover as much are kept.
    rm -f "$work"/merged/*
    "$binaries/Fuzz$name" -set_cover_merge=1 -use_counters=0 -max_len=$longest "$work/merged" "$corpus" "$work/found" 2>>"$work/log"
    rm -f "$corpus"/*
    cp "$work"/merged/* "$corpus"/
    echo "$name: $(grep -o 'stat::number_of_executed_units:.*' "$work/log" | tail -1), corpus $(ls "$corpus" | wc -l) files"
done
