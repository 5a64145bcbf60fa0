# Varnish 7 in front of three Pictors: a cache with purges, a few classes of Accept, consistent hashing.
# Run it with: varnishd -a :80 -f /etc/varnish/pictor.vcl -s malloc,2G -p http_req_hdr_len=16k
# Replace the addresses 10.0.0.11 to 13. Each Pictor needs Varnish in server.trusted_proxies, and
# server.forwarded_header "x-forwarded-for".
#
# Purge Pictor first, then Varnish. In the other order Varnish may store the old image again in between:
#   pictor purge https://example.com/a.jpg
#   curl -X BAN -H "X-Source: https%3A%2F%2Fexample.com%2Fa.jpg" http://varnish/
#   curl -X BAN -H "X-Source-Prefix: https%3A%2F%2Fexample.com%2F" http://varnish/
# The source is compared as clients write it in `url`, so let all of them encode it alike (docs/clients).
vcl 4.1;

import directors;
import std;

# /readyz is 503 from SIGTERM on, while requests are still served for server.shutdown_delay (5s).
probe ready {
  .url = "/readyz";
  .interval = 1s;
  .timeout = 1s;
  .window = 2;
  .threshold = 2;
  .initial = 2;
}

# first_byte_timeout is longer than server.request_timeout (30s): the client gets the 504 of Pictor, with its reason.
backend pictor1 {
  .host = "10.0.0.11"; .port = "8080"; .probe = ready;
  .connect_timeout = 2s; .first_byte_timeout = 35s; .between_bytes_timeout = 35s;
}
backend pictor2 {
  .host = "10.0.0.12"; .port = "8080"; .probe = ready;
  .connect_timeout = 2s; .first_byte_timeout = 35s; .between_bytes_timeout = 35s;
}
backend pictor3 {
  .host = "10.0.0.13"; .port = "8080"; .probe = ready;
  .connect_timeout = 2s; .first_byte_timeout = 35s; .between_bytes_timeout = 35s;
}

# Who may purge.
acl operators {
  "127.0.0.1";
  "::1";
}

sub vcl_init {
  # One source, one Pictor: it is downloaded once, and the caches of all machines add up.
  new pictors = directors.shard();
  pictors.add_backend(pictor1);
  pictors.add_backend(pictor2);
  pictors.add_backend(pictor3);
  pictors.reconfigure();
}

sub vcl_recv {
  if (req.method == "BAN") {
    if (client.ip !~ operators) {
      return (synth(403));
    }
    if (req.http.X-Source-Prefix) {
      set req.http.X-Ban = "obj.http.X-Source ~ ^" + req.http.X-Source-Prefix;
    } else {
      set req.http.X-Ban = "obj.http.X-Source == " + req.http.X-Source;
    }
    if (std.ban(req.http.X-Ban)) {
      return (synth(200, "Banned"));
    }
    return (synth(400, std.ban_error()));
  }
  # Clients need nothing else. Operators use server.operator_address.
  if (req.url !~ "^/(image|info)\?") {
    return (synth(404));
  }
  # Pictor believes a trusted proxy's decision on which requests are traced (tracing.sample).
  unset req.http.traceparent;
  unset req.http.tracestate;
  # The order of parameters has no meaning, also in signed URLs.
  set req.url = std.querysort(req.url);
  # Pictor asks whether Accept names a format. So there are eight classes of it, and Vary keeps a copy for each.
  set req.http.X-Accept = "*/*";
  if (req.http.Accept ~ "(?i)image/avif\s*(,|;|$)" &&
    req.http.Accept !~ "(?i)image/avif[^,]*;\s*q=0(\.0*)?\s*(,|;|$)") {
    set req.http.X-Accept = req.http.X-Accept + ", image/avif";
  }
  if (req.http.Accept ~ "(?i)image/webp\s*(,|;|$)" &&
    req.http.Accept !~ "(?i)image/webp[^,]*;\s*q=0(\.0*)?\s*(,|;|$)") {
    set req.http.X-Accept = req.http.X-Accept + ", image/webp";
  }
  if (req.http.Accept ~ "(?i)image/jxl\s*(,|;|$)" &&
    req.http.Accept !~ "(?i)image/jxl[^,]*;\s*q=0(\.0*)?\s*(,|;|$)") {
    set req.http.X-Accept = req.http.X-Accept + ", image/jxl";
  }
  set req.http.Accept = req.http.X-Accept;
  unset req.http.X-Accept;
  # Pictor reads cookies only if a host rule forwards them. Then remove this line: Varnish caches no such request.
  unset req.http.Cookie;
}

sub vcl_backend_fetch {
  # A retry goes to the next machine of this source.
  set bereq.backend = pictors.backend(by=KEY, alt=bereq.retries,
    key=pictors.key(regsub(bereq.url, "^.*[?&]url=([^&]*).*$", "\1")));
}

sub vcl_backend_error {
  # No answer at all. A 503 of Pictor is no error here: asking again would double the load.
  if (bereq.retries == 0 && bereq.method == "GET") {
    return (retry);
  }
}

sub vcl_backend_response {
  # Kept with the image for bans, which then need no request to be checked.
  set beresp.http.X-Source = regsub(bereq.url, "^.*[?&]url=([^&]*).*$", "\1");
  # Pictor itself serves stale images. Here one is served only while the fresh one is fetched.
  set beresp.grace = 10s;
  set beresp.keep = 1h;
  # The end of a signed URL, and images that may not be stale.
  if (beresp.http.Cache-Control ~ "must-revalidate") {
    set beresp.grace = 0s;
  }
}

sub vcl_deliver {
  unset resp.http.X-Source;
  # RFC 9211: each cache adds itself.
  if (obj.hits > 0) {
    set resp.http.Cache-Status = resp.http.Cache-Status + ", varnish; hit";
  }
}
