// CSystemd: libsystemd's messages to a service manager.
#pragma once

#include <systemd/sd-daemon.h>
