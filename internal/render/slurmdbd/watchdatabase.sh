# Ends with 0 when slurmdbd, the neighbour in this pod, is connected to its database, and says otherwise what it knows.
# slurmdbd itself is asked; while it does not serve yet (it does not before it has its database, and not while it converts
# tables), its connections are looked at. The database is never connected to from here: servers block hosts that connect
# and say nothing.
answer=$(SLURM_CONF=/etc/slurm/ask.conf timeout 8 sacctmgr ping 2>&1)
case $answer in
*" is UP"*) exit 0 ;;
*"Connection refused"* | *"not found"* | *"No such file"*) ;;
*) echo "$answer" && exit 1 ;;
esac
established=$(printf '[0-9A-F]+:%04X 01 ' "$STORAGE_PORT")
grep -qsE "$established" /proc/net/tcp /proc/net/tcp6 && exit 0
echo "slurmdbd has no connection to port $STORAGE_PORT of its database"
exit 1
