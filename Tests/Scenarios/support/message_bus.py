"""A message bus (D-Bus) of the test's own, and a service on it with NetworkManager's names."""

import threading

from jeepney import DBusAddress, HeaderFields, MessageType, message_bus, new_error, new_method_return, new_signal
from jeepney.io.blocking import Proxy, open_dbus_connection

from .programs import Program, find

NAME = "org.freedesktop.NetworkManager"
ROOT = "/org/freedesktop/NetworkManager"
DEVICE = NAME + ".Device"
YES, NO, GUESSED_YES, GUESSED_NO = 1, 2, 3, 4

CONFIGURATION = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <listen>unix:path={socket}</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow send_destination="*"/><allow receive_sender="*"/><allow own="*"/><allow user="*"/>
  </policy>
</busconfig>
"""


class MessageBus:
    """dbus-daemon at a socket in `folder`."""

    def __init__(self, folder):
        self.socket = folder / "bus"
        configuration = folder / "bus.conf"
        configuration.write_text(CONFIGURATION.format(socket=self.socket))
        self._program = Program(find("dbus-daemon"), f"--config-file={configuration}", "--nofork", "--print-address=1")
        self._program.output.wait_for(lambda line: line.startswith("unix:"), "the address of the bus")

    @property
    def address(self):
        return f"unix:path={self.socket}"

    def close(self):
        self._program.end()


class NetworkManager(threading.Thread):
    """The part of NetworkManager's interface that tells what is metered, of real devices that need not exist."""

    def __init__(self, bus, machine=NO, **devices):
        super().__init__(daemon=True)
        self.machine = machine
        self.devices = devices
        self.calls = []
        self._connection = open_dbus_connection(bus.address)
        reply = Proxy(message_bus, self._connection).RequestName(NAME)
        assert reply == (1,), f"the name {NAME} was not given: {reply}"
        self.start()

    def set(self, **devices):
        """Changes the property `Metered` of devices, and notifies."""
        for name, metered in devices.items():
            self.devices[name] = metered
            place = DBusAddress(self._path(name), interface="org.freedesktop.DBus.Properties")
            change = (DEVICE, {"Metered": ("u", metered)}, [])
            self._connection.send(new_signal(place, "PropertiesChanged", "sa{sv}as", change))

    def _path(self, name):
        return f"{ROOT}/Devices/{list(self.devices).index(name) + 1}"

    def run(self):
        while True:
            try:
                message = self._connection.receive()
            except (OSError, ValueError, KeyError):  # The connection was closed.
                return
            if message.header.message_type == MessageType.method_call:
                self._connection.send(self._answer(message))

    def _answer(self, call):
        fields = call.header.fields
        path, member = fields[HeaderFields.path], fields[HeaderFields.member]
        self.calls.append(" ".join([member, *call.body[1:]]))
        paths = {self._path(name): name for name in self.devices}
        if (path, member) == (ROOT, "GetDevices"):
            return new_method_return(call, "ao", (list(paths),))
        if member == "Get" and path == ROOT and call.body == (NAME, "Metered"):
            return new_method_return(call, "v", (("u", self.machine),))
        if member == "Get" and path in paths and call.body[0] == DEVICE:
            name = paths[path]
            values = {"Metered": ("u", self.devices[name]), "Interface": ("s", name), "IpInterface": ("s", name)}
            return new_method_return(call, "v", (values[call.body[1]],))
        return new_error(call, "org.freedesktop.DBus.Error.UnknownMethod", "s", (f"{path} {member}",))

    def close(self):
        self._connection.close()
