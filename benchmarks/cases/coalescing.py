"""A thousand clients who ask for one image at once."""

from statistics import median

from kit import client, http
from kit.report import Claim, Mark
from kit.servers import FLOOR, LOCAL_ORIGIN, ORIGIN, PICTOR, Bench

from .hits import save_answer

CLIENTS = 1_000
#: One of which the first answer takes about as long as all answers take to send, and one of which it takes longer.
SOURCES = ["3000x2000.jpg", "12000x9000.jpg"]
#: Rounds here for each round of the run: one takes a moment, and nine have medians a quarter apart from run to run.
ROUNDS = 15


def spread(seconds: list[float]) -> str:
    """The median in milliseconds, with the least and the most."""
    return f"{median(seconds) * 1e3:.1f} ({min(seconds) * 1e3:.1f}–{max(seconds) * 1e3:.1f})"


def run(bench: Bench) -> Claim:
    origin = bench.nginx("origin", ORIGIN, "/800x600.jpg")
    # Popular images would be encoded again, smaller.
    pictor = bench.pictor("--server.connections", 4_096, "--imaging.recompress_after", 0)
    measured, rows, most = {}, [], 0
    for source in SOURCES:
        floor = bench.floor(*save_answer(bench, http.image(f"{LOCAL_ORIGIN}/{source}?floor", w=300)), crowd=CLIENTS)
        rounds = measured[source] = []
        for number in range(bench.rounds * ROUNDS):
            before = http.stats(PICTOR)
            path = http.image(f"{LOCAL_ORIGIN}/{source}?{number}", w=300)
            first, last = client.at_once(PICTOR, path, CLIENTS)
            after = http.stats(PICTOR)
            downloads = after["downloads"]["succeeded"] - before["downloads"]["succeeded"]
            encodes = after["imaging"]["succeeded"] - before["imaging"]["succeeded"]
            most = max(most, downloads, encodes)
            bare_first, bare_last = client.at_once(FLOOR, "/", CLIENTS)
            rounds.append((first, last, last - first, bare_last - bare_first))
        rows.append([source, f"{len(rounds)}", *(spread(all_) for all_ in zip(*rounds))])
        floor.stop()
    pictor.stop()
    origin.stop()
    return Claim(
        name="coalescing", title=f"{CLIENTS:,} clients, one image",
        how=f"{CLIENTS:,} connections ask for one image at 300 px at once: milliseconds to the first and the last whole "
            "answer, medians (least–most). Bare libmicrohttpd sends the same bytes to as many.",
        columns=["source", "rounds", "first ms", "last ms", "first to last ms", "bare libmicrohttpd's ms"],
        rows=rows,
        marks=[
            Mark("downloads and encodes, the most in a round", most, 1, at_most=True),
            *(Mark(f"{source}: last answer, of the first (median)", median(last / first for first, last, _, _ in rounds),
                   1.2, at_most=True)
              for source, rounds in measured.items()),
            *(Mark(f"{source}: first to last answer, of bare libmicrohttpd's (medians)",
                   median(mine for _, _, mine, _ in rounds) / median(bare for _, _, _, bare in rounds), 1.3, at_most=True)
              for source, rounds in measured.items()),
        ])
