# Completion of pictor for bash, made from the tables of commands and keys by `make generated`.
# Source it, or copy it to /usr/share/bash-completion/completions/pictor.
_pictor() {
  local word=${COMP_WORDS[COMP_CWORD]} last=${COMP_WORDS[COMP_CWORD - 1]} words= command=
  case $last in
    --door) COMPREPLY=($(compgen -W 'nextjs imgproxy thumbor imagor cloudflare weserv ipx imgix imaginary' -- "$word")); return ;;
    --page) COMPREPLY=($(compgen -f -- "$word")); return ;;
    --config) COMPREPLY=($(compgen -f -- "$word")); return ;;
    --server.cors_origin) COMPREPLY=($(compgen -W 'auto' -- "$word")); return ;;
    --server.forwarded_header) COMPREPLY=($(compgen -W 'auto x-forwarded-for forwarded' -- "$word")); return ;;
    --server.proxy_protocol) COMPREPLY=($(compgen -W 'true false' -- "$word")); return ;;
    --server.allow) COMPREPLY=($(compgen -W 'auto' -- "$word")); return ;;
    --server.allow_enlarge) COMPREPLY=($(compgen -W 'true false' -- "$word")); return ;;
    --server.presets_only) COMPREPLY=($(compgen -W 'true false' -- "$word")); return ;;
    --server.redirect_auto) COMPREPLY=($(compgen -W 'true false' -- "$word")); return ;;
    --server.page) COMPREPLY=($(compgen -W 'true false' -- "$word")); return ;;
    --server.client_hints) COMPREPLY=($(compgen -W 'true false' -- "$word")); return ;;
    --server.fallback_status) COMPREPLY=($(compgen -W 'auto 200' -- "$word")); return ;;
    --server.explain_errors) COMPREPLY=($(compgen -W 'true false' -- "$word")); return ;;
    --memory.budget) COMPREPLY=($(compgen -W 'auto' -- "$word")); return ;;
    --memory.limit) COMPREPLY=($(compgen -W 'auto' -- "$word")); return ;;
    --disk.admission) COMPREPLY=($(compgen -W 'auto always second_request' -- "$word")); return ;;
    --disk.expire_by) COMPREPLY=($(compgen -W 'access modification creation' -- "$word")); return ;;
    --download.order) COMPREPLY=($(compgen -W 'fifo lifo' -- "$word")); return ;;
    --sources.bodies) COMPREPLY=($(compgen -W 'off trusted all' -- "$word")); return ;;
    --imaging.worker_memory) COMPREPLY=($(compgen -W 'auto' -- "$word")); return ;;
    --imaging.sandbox) COMPREPLY=($(compgen -W 'required if_possible off' -- "$word")); return ;;
    --imaging.keep_format) COMPREPLY=($(compgen -W 'true false' -- "$word")); return ;;
    --imaging.fail_on) COMPREPLY=($(compgen -W 'none truncated error warning' -- "$word")); return ;;
    --imaging.avif_later) COMPREPLY=($(compgen -W 'true false' -- "$word")); return ;;
    --log.format) COMPREPLY=($(compgen -W 'text json logfmt' -- "$word")); return ;;
    --log.level) COMPREPLY=($(compgen -W 'debug info warning error' -- "$word")); return ;;
    --log.requests) COMPREPLY=($(compgen -W 'all misses errors' -- "$word")); return ;;
    --log.access_format) COMPREPLY=($(compgen -W 'log json logfmt combined' -- "$word")); return ;;
    --fleet.s3.addressing) COMPREPLY=($(compgen -W 'path virtual auto' -- "$word")); return ;;
    --signing.mode) COMPREPLY=($(compgen -W 'off options required' -- "$word")); return ;;
    --all | --check-config | --help | --json | --print-config | --version) ;;
    --*) compopt +o default; return ;;
  esac
  ((COMP_CWORD > 1)) && command=${COMP_WORDS[1]}
  case $command in
    healthcheck) words="" ;;
    prefetch) words="--preset" ;;
    purge) words="--prefix --host --tag --all" ;;
    explain) words="--accept --json" ;;
    doctor) words="--json" ;;
    check) words="--json" ;;
    sign) words="--expires-in --key" ;;
    translate) words="--door" ;;
    replay) words="--door --against --allow-host --sample --page" ;;
    selftest) words="security" ;;
    help) words="healthcheck prefetch purge explain doctor check sign translate replay selftest help" ;;
    *) words="--check-config --print-config --version"; ((COMP_CWORD == 1)) && words+=" healthcheck prefetch purge explain doctor check sign translate replay selftest help" ;;
  esac
  # A word that is no option is most likely a file.
  if [[ $word == -* ]]; then
    words+=" --config --help $_pictor_keys"
  elif ((COMP_CWORD > 1)) && [[ $command != help && $command != selftest ]]; then
    words=
  fi
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}
_pictor_keys="
--server.address
--server.port
--server.operator_address
--server.id
--server.workers
--server.connections
--server.connections_per_client
--server.active_requests
--server.active_requests_per_client
--server.imaging_time_per_client
--server.requests_per_second
--server.idle_timeout
--server.header_timeout
--server.request_timeout
--server.answer_timeout
--server.minimum_rate
--server.shutdown_delay
--server.grace_time
--server.cors_origin
--server.trusted_proxies
--server.forwarded_header
--server.proxy_protocol
--server.stats_lifetime
--server.allow
--server.allow_enlarge
--server.size_steps
--server.presets_only
--server.ignore_parameters
--server.redirect_auto
--server.page
--server.samples
--server.client_hints
--server.fallback
--server.fallback_status
--server.explain_errors
--presets
--watermarks
--fallbacks
--hosts
--doors
--admin.tokens
--memory.budget
--memory.limit
--memory.count_limit
--memory.pressure
--disk.path
--disk.limit
--disk.count_limit
--disk.admission
--disk.maximum_age
--disk.expire_by
--freshness.default_lifetime
--freshness.client_default
--freshness.minimum_lifetime
--freshness.maximum_lifetime
--freshness.stale_while_revalidate
--freshness.stale_if_error
--failures.ttl
--download.timeout
--download.connect_timeout
--download.first_byte_timeout
--download.retries
--download.breaker_threshold
--download.order
--download.limit
--download.limit_per_host
--download.limit_per_client
--download.queue_limit
--download.maximum_bytes
--download.allow_networks
--download.allow_hosts
--download.deny_hosts
--download.ports
--download.proxy
--download.ca_file
--sources.local_root
--sources.base_url
--sources.replace
--sources.allow
--sources.bodies
--sources.body_lifetime
--sources.local_lifetime
--imaging.workers
--imaging.deadline
--imaging.processor_time
--imaging.queue_limit
--imaging.worker_memory
--imaging.sandbox
--imaging.formats
--imaging.auto_formats
--imaging.keep_format
--imaging.maximum_pixels
--imaging.maximum_result_pixels
--imaging.maximum_frames
--imaging.fail_on
--imaging.avif_later
--imaging.recompress_after
--imaging.jpeg_quality
--imaging.webp_quality
--imaging.avif_quality
--imaging.jxl_quality
--imaging.save_data_reduction
--prefetch.limit
--log.format
--log.level
--log.requests
--log.access_format
--log.access_path
--fleet.redis
--fleet.key_prefix
--fleet.timeout
--fleet.retry_interval
--fleet.variant_limit
--fleet.s3.bucket
--fleet.s3.endpoint
--fleet.s3.region
--fleet.s3.prefix
--fleet.s3.access_key
--fleet.s3.secret_key
--fleet.s3.session_token
--fleet.s3.addressing
--fleet.s3.ca_file
--tracing.propagate
--tracing.endpoint
--tracing.sample
--tracing.headers
--signing.mode
--signing.keys"
complete -o default -F _pictor pictor
