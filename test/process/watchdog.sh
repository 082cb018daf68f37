# shellcheck shell=sh
# Ends the processes of a group and removes its directory once standard input closes: that is, once the group is closed or
# its owner is gone, whatever ended it. Reads "+ PID SIGNAL" for a process group to end with SIGNAL, "- PID" for one that is over.
trap '' HUP INT TERM # a signal meant for the owner must not end its watchdog first
directory=$1
groups=

while read -r verb pid signal; do
  case $verb in
  +) groups="$groups $pid:$signal" ;;
  -)
    kept=
    for group in $groups; do
      [ "${group%%:*}" = "$pid" ] || kept="$kept $group"
    done
    groups=$kept
    ;;
  esac
done

for group in $groups; do
  kill -s "${group#*:}" -- "-${group%%:*}"
  kill -s CONT -- "-${group%%:*}" # one that a test had stopped takes its signal only when it runs again
done

tries=100 # ten seconds
for group in $groups; do
  while [ "$tries" -gt 0 ] && kill -s 0 -- "-${group%%:*}"; do
    tries=$((tries - 1))
    sleep 0.1
  done
  kill -s KILL -- "-${group%%:*}"
done

# A process that is just dying may still add a file between the reading of a directory and its removal.
rm -rf -- "$directory" || { sleep 1 && rm -rf -- "$directory"; }
