"""The cases: each measures and returns a Claim, or several."""

from . import (beside, cache, coalescing, curves, disk, estimates, fleet, formats, growth, hits, layers, lone, memory, misses, peak, photos, shares,
               slow, start, trace)

#: In the order of the report.
CASES = {
    "hits": hits.run, "beside": beside.run, "misses": misses.run, "photos": photos.run, "sources": photos.run_others, "browser": photos.run_browser,
    "shares": shares.run, "lone": lone.run,
    "disk": disk.run, "slow": slow.run, "coalescing": coalescing.run, "memory": memory.run, "peak": peak.run, "layers": layers.run,
    "formats": formats.run, "estimates": estimates.run, "start": start.run, "cache": cache.run,
    "curves": curves.run, "trace": trace.run, "growth": growth.run, "fleet": fleet.run,
}

#: Cases that need no image of `images.make`.
OWN_IMAGES = {"cache", "curves", "estimates", "trace", "growth", "fleet"}
