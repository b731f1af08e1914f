package main

import _ "time/tzdata" // the time zones of schedules, which Windows has under other names
