/// Where a message bus listens, in the form of the environment variable `DBUS_SYSTEM_BUS_ADDRESS`.
///
/// - Source: D-Bus specification, "Server Addresses".
package enum BusAddress {
    /// The environment variable that names the system bus.
    package static let variable = "DBUS_SYSTEM_BUS_ADDRESS"
    /// Where the system bus is without the variable.
    package static let standard = SocketAddress.unix(path: "/run/dbus/system_bus_socket")
    /// Longest text that is read, in bytes.
    private static let lengthLimit = 4096

    /// - Parameter text: addresses separated by semicolons, such as `unix:path=/run/bus;unix:abstract=bus`.
    /// - Returns: the first Unix socket; `nil` without one.
    package static func socket(_ text: String) -> SocketAddress? {
        guard text.utf8.count <= self.lengthLimit else { return nil }
        for address in text.split(separator: ";") where address.hasPrefix("unix:") {
            for pair in address.dropFirst("unix:".count).split(separator: ",") {
                let sides = pair.split(separator: "=", maxSplits: 1)
                guard sides.count == 2, let value = self.unescaped(sides[1]) else { continue }
                if sides[0] == "path" { return .unix(path: value) }
                if sides[0] == "abstract" { return .unix(path: "@" + value) }
            }
        }
        return nil
    }

    /// Replaces `%` and two hexadecimal digits by the byte. Bytes of 0 end a path and are refused.
    private static func unescaped(_ text: Substring) -> String? {
        var (bytes, rest) = ([UInt8](), Substring(text).utf8)
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            let digits = rest.prefix(2)
            // A sign would be taken for a digit.
            guard digits.count == 2, digits.first != UInt8(ascii: "+"), digits.first != UInt8(ascii: "-"),
                let value = UInt8(Substring(digits), radix: 16), value > 0
            else { return nil }
            rest = rest.dropFirst(2)
            bytes.append(value)
        }
        return String(validating: bytes, as: UTF8.self)
    }
}
