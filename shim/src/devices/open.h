// Opens the device that a configuration names.
#pragma once

#include "../../include/gpushare.h"
#include "../device.h"

namespace gpushare {

// Never null. Throws DeviceFailure: no driver, no such GPU, or pages or a budget that it can't
// have.
Device* open_device(const gs_config& config);

}  // namespace gpushare
