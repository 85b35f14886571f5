import ControlAPI
import Foundation
import WireText

/// Paths of rooms and users in the REST interface.
package enum RoomPath {
    package static let all = "/v1/rooms"

    package static func room(_ name: String) -> String { "\(self.all)/\(ControlRequest.segment(name))" }

    /// - Parameter action: custom method, like `kick`.
    package static func action(_ action: String, _ name: String) -> String { "\(self.room(name)):\(action)" }

    package static let users = "/v1/users"

    package static func user(_ id: String) -> String { "\(self.users)/\(ControlRequest.segment(id))" }
}

/// Data of a message for rooms or users.
package enum RoomData: Sendable, Equatable {
    /// The text of a JSON value.
    case json([UInt8])
    case bytes([UInt8])

    /// Text that is a JSON value as it is, other text as a JSON string.
    package init(text: String) {
        self = Self.value(text) ?? .string(text)
    }

    private static func value(_ text: String) -> RoomData? {
        var reader = JSONReader(Array(text.utf8))
        // null would count as missing.
        guard reader.nextKind() != .null, let raw = try? reader.readRaw(), reader.isAtEnd() else { return nil }
        return .json(raw)
    }

    package static func string(_ text: String) -> RoomData {
        var bytes: [UInt8] = []
        bytes.append(jsonString: text)
        return .json(bytes)
    }
}

extension ControlRequest {
    /// A request that has data in its body beside the members of `body`. JSON is sent as it is, with the order of members
    /// and the digits of numbers that it has.
    package init(_ path: String, _ data: RoomData, beside body: some Encodable) throws(ControlFailure) {
        try self.init(.post, path, json: body)
        let rest = Array(self.body ?? Data("{}".utf8)).dropFirst()
        let member: [UInt8] =
            switch data {
            case .json(let text): Array(#""data":"#.utf8) + text
            case .bytes(let bytes): Array(#""b64data":"\#(Base64.encoded(bytes))""#.utf8)
            }
        self.body = Data([UInt8(ascii: "{")] + member + (rest.first == UInt8(ascii: "}") ? [] : [0x2C]) + rest)
    }
}
