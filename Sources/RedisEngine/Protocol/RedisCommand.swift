/// One argument of a command.
package enum RedisArgument: Sendable, Equatable, ExpressibleByStringLiteral, ExpressibleByIntegerLiteral {
    case bytes([UInt8])
    case text(String)
    case number(Int)

    package init(stringLiteral value: String) { self = .text(value) }
    package init(integerLiteral value: Int) { self = .number(value) }

    fileprivate var byteCount: Int {
        switch self {
        case .bytes(let bytes): bytes.count
        case .text(let text): text.utf8.count
        case .number(let number): String(number).utf8.count
        }
    }
}

/// A command for the server: its name, and its arguments. The description omits the arguments, which may be secret.
package struct RedisCommand: Sendable, Equatable, CustomStringConvertible, CustomDebugStringConvertible {
    package let name: String
    package var arguments: [RedisArgument]

    package init(_ name: String, _ arguments: RedisArgument...) {
        self.init(name, arguments)
    }

    package init(_ name: String, _ arguments: [RedisArgument]) {
        self.name = name
        self.arguments = arguments
    }

    package var description: String { "\(self.name) with \(self.arguments.count) arguments" }
    package var debugDescription: String { self.description }

    /// Size on the wire, in bytes.
    package var encodedSize: Int {
        var size = 1 + String(self.arguments.count + 1).utf8.count + 2
        size += Self.encodedSize(self.name.utf8.count)
        for argument in self.arguments { size += Self.encodedSize(argument.byteCount) }
        return size
    }

    private static func encodedSize(_ byteCount: Int) -> Int {
        1 + String(byteCount).utf8.count + 2 + byteCount + 2
    }
}

extension [UInt8] {
    /// Appends a command as an array of blob strings, which RESP2 and RESP3 have in common.
    package mutating func append(redis command: RedisCommand) {
        self.append(UInt8(ascii: "*"), length: command.arguments.count + 1)
        self.append(blob: command.name.utf8)
        for argument in command.arguments {
            switch argument {
            case .bytes(let bytes): self.append(blob: bytes)
            case .text(let text): self.append(blob: text.utf8)
            case .number(let number): self.append(blob: String(number).utf8)
            }
        }
    }

    private mutating func append(_ type: UInt8, length: Int) {
        self.append(type)
        self.append(contentsOf: String(length).utf8)
        self.append(0x0D)
        self.append(0x0A)
    }

    private mutating func append(blob content: some Collection<UInt8>) {
        self.append(UInt8(ascii: "$"), length: content.count)
        self.append(contentsOf: content)
        self.append(0x0D)
        self.append(0x0A)
    }
}
