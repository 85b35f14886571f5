import StreamTransport

/// A message bus with NetworkManager at a listener of the test. It understands only what `MeteredDevices` asks.
package final class ScriptedBus {
    /// A device by the name of its network interface, with its property `Metered`; `nil` if it was just removed.
    package var devices: [(name: String, metered: UInt32?)] = []
    package var machine: UInt32 = 0
    package var hasNetworkManager = true
    /// Whether nothing is answered.
    package var isSilent = false
    /// The calls of all clients, as method and argument.
    package private(set) var calls: [String] = []

    private let listener: ScriptedListener
    private var clients: [Client] = []

    private final class Client {
        let peer: ScriptedPeer
        var buffer: [UInt8] = []
        var isOpen = false

        init(_ peer: ScriptedPeer) { self.peer = peer }
    }

    package init(_ listener: ScriptedListener) {
        self.listener = listener
    }

    package var clientCount: Int { self.listener.accepted.filter { !$0.isClosed && !$0.sawEnd }.count }

    /// Answers what has arrived.
    package func step() {
        while self.clients.count < self.listener.accepted.count {
            self.clients.append(Client(self.listener.accepted[self.clients.count]))
        }
        for client in self.clients where !client.peer.isClosed && !self.isSilent {
            client.buffer += client.peer.takeReceived()
            if !client.isOpen { self.authenticate(client) }
            while client.isOpen, let call = self.nextCall(client) { self.answer(call, client.peer) }
            if client.peer.sawEnd || client.peer.failure != nil { client.peer.close() }
        }
    }

    private func authenticate(_ client: Client) {
        while !client.isOpen, let end = client.buffer.firstIndex(of: 0x0A) {
            let line = String(decoding: client.buffer[..<end], as: UTF8.self)
            client.buffer.removeFirst(end + 1)
            switch line {
            case "\0AUTH EXTERNAL\r": client.peer.send("DATA\r\n")
            case "DATA\r": client.peer.send("OK 1234deadbeef\r\n")
            case "BEGIN\r": client.isOpen = true
            default: client.peer.send("ERROR\r\n")
            }
        }
    }

    private struct Call {
        let serial: UInt32
        let text: String
    }

    /// - Returns: the whole message as text, in which names are looked for.
    private func nextCall(_ client: Client) -> Call? {
        guard client.buffer.count >= 16 else { return nil }
        func word(_ offset: Int) -> Int { (0..<4).reduce(0) { $0 | Int(client.buffer[offset + $1]) << (8 * $1) } }
        let length = (16 + word(12) + 7) / 8 * 8 + word(4)
        guard client.buffer.count >= length else { return nil }
        defer { client.buffer.removeFirst(length) }
        return Call(
            serial: UInt32(word(8)), text: String(decoding: client.buffer[..<length], as: UTF8.self))
    }

    private func answer(_ call: Call, _ peer: ScriptedPeer) {
        let method = ["Hello", "AddMatch", "GetDevices", "Get"].first { call.text.contains("\0\($0)\0") } ?? "?"
        let property = ["Metered", "Interface", "IpInterface"].first { call.text.contains("\0\($0)\0") }
        self.calls.append([method, property].compactMap { $0 }.joined(separator: " "))
        func reply(_ signature: String, _ body: [UInt8]) {
            peer.send(Self.message(2, [.number(5, call.serial), .signature(8, signature)], body))
        }
        switch (method, property) {
        case ("Hello", _): return reply("s", Self.string(":1.5"))
        case ("AddMatch", _): return
        case _ where !self.hasNetworkManager: break
        case ("GetDevices", _):
            var paths: [UInt8] = []
            for index in self.devices.indices { paths = Self.aligned(paths) + Self.string("/device/\(index)/") }
            return reply("ao", Self.word(UInt32(paths.count)) + paths)
        case ("Get", let property?):
            guard let device = self.devices.indices.first(where: { call.text.contains("\0/device/\($0)/\0") }) else {
                return reply("v", [1, 0x75, 0, 0] + Self.word(self.machine))
            }
            let (name, metered) = self.devices[device]
            if property != "Metered" { return reply("v", [1, 0x73, 0, 0] + Self.string(name)) }
            if let metered { return reply("v", [1, 0x75, 0, 0] + Self.word(metered)) }
        default: break
        }
        let error = "org.freedesktop.DBus.Error.ServiceUnknown"
        peer.send(Self.message(3, [.number(5, call.serial), .string(4, error)], []))
    }

    /// Notifies all clients that a property of a device has changed.
    package func notify() {
        let fields: [Field] = [
            .string(2, "org.freedesktop.DBus.Properties"), .string(3, "PropertiesChanged"),
        ]
        for client in self.clients where client.isOpen && !client.peer.isClosed {
            client.peer.send(Self.message(4, fields, []))
        }
    }

    // MARK: Messages

    private enum Field {
        case number(UInt8, UInt32)
        case string(UInt8, String)
        case signature(UInt8, String)

        var bytes: [UInt8] {
            switch self {
            case .number(let code, let value): [code, 1, 0x75, 0] + ScriptedBus.word(value)
            case .string(let code, let text): [code, 1, 0x73, 0] + ScriptedBus.string(text)
            case .signature(let code, let text):
                [code, 1, 0x67, 0, UInt8(text.utf8.count)] + Array(text.utf8) + [0]
            }
        }
    }

    private static func message(_ kind: UInt8, _ fields: [Field], _ body: [UInt8]) -> [UInt8] {
        var head: [UInt8] = []
        for field in fields { head = self.aligned(head, 8) + field.bytes }
        let fixed = [0x6C, kind, 1, 1] + self.word(UInt32(body.count)) + self.word(1) + self.word(UInt32(head.count))
        return self.aligned(fixed + head, 8) + body
    }

    private static func word(_ value: UInt32) -> [UInt8] {
        (0..<4).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
    }

    private static func string(_ text: String) -> [UInt8] {
        self.word(UInt32(text.utf8.count)) + Array(text.utf8) + [0]
    }

    private static func aligned(_ bytes: [UInt8], _ size: Int = 4) -> [UInt8] {
        bytes + [UInt8](repeating: 0, count: (size - bytes.count % size) % size)
    }
}
