/// One part of a message between nodes, as it is published.
struct BusEnvelope: Equatable {
    enum Kind: UInt8 {
        case call = 1
        case answer = 2
        case announcement = 3
        /// The node has too much to do.
        case refusal = 4
        /// The answer is longer than nodes exchange.
        case answerTooLarge = 5
        /// The sender of the call of this number does not wait for its answer any more.
        case withdrawal = 6
    }

    /// Bytes of one part; a longer message has several.
    static let partSize = 256 << 10
    /// Longest message, in bytes.
    static let messageLimit = 1 << 20
    static let maximumParts = messageLimit / partSize
    /// Longest name of a node or an instance, in bytes of UTF-8.
    static let nameLimit = 255
    private static let magic: [UInt8] = [0x53, 0x4C, 1]

    var kind: Kind
    /// Of a call, chosen by the caller; its answer has the same.
    var number: UInt64
    var part: Int
    var partCount: Int
    var sender: String
    var instance: String
    var bytes: ArraySlice<UInt8>

    /// The parts of a message.
    static func parts(
        _ kind: Kind, number: UInt64, sender: String, instance: String, _ bytes: [UInt8]
    ) -> [BusEnvelope] {
        let count = max(1, (bytes.count + self.partSize - 1) / self.partSize)
        return (0..<count).map { part in
            let start = part * self.partSize
            return BusEnvelope(
                kind: kind, number: number, part: part, partCount: count, sender: sender, instance: instance,
                bytes: bytes[start..<min(bytes.count, start + self.partSize)])
        }
    }

    var encoded: [UInt8] {
        var bytes = Self.magic
        bytes.append(self.kind.rawValue)
        for shift in stride(from: 56, through: 0, by: -8) {
            bytes.append(UInt8(truncatingIfNeeded: self.number >> shift))
        }
        bytes.append(UInt8(clamping: self.part))
        bytes.append(UInt8(clamping: self.partCount))
        for name in [self.sender, self.instance] {
            bytes.append(UInt8(clamping: name.utf8.count))
            bytes.append(contentsOf: name.utf8.prefix(Self.nameLimit))
        }
        bytes.append(contentsOf: self.bytes)
        return bytes
    }

    init(
        kind: Kind, number: UInt64, part: Int, partCount: Int, sender: String, instance: String,
        bytes: ArraySlice<UInt8>
    ) {
        self.kind = kind
        self.number = number
        self.part = part
        self.partCount = partCount
        self.sender = sender
        self.instance = instance
        self.bytes = bytes
    }

    /// - Returns: `nil` unless `bytes` are a part that this version knows.
    init?(decoding bytes: [UInt8]) {
        var rest = bytes[...]
        func take(_ count: Int) -> ArraySlice<UInt8>? {
            guard rest.count >= count else { return nil }
            defer { rest = rest.dropFirst(count) }
            return rest.prefix(count)
        }
        func name() -> String? {
            guard let count = rest.popFirst(), count > 0, let name = take(Int(count)) else { return nil }
            return String(validating: name, as: UTF8.self)
        }
        guard let magic = take(3), Array(magic) == Self.magic, let kind = rest.popFirst().flatMap(Kind.init),
            let number = take(8), let part = rest.popFirst(), let count = rest.popFirst(),
            (1...Self.maximumParts).contains(Int(count)), part < count, let sender = name(), let instance = name(),
            rest.count <= Self.partSize
        else { return nil }
        self.init(
            kind: kind, number: number.reduce(0) { $0 << 8 | UInt64($1) }, part: Int(part), partCount: Int(count),
            sender: sender, instance: instance, bytes: rest)
    }
}

/// Puts the parts of messages together. Parts of one message arrive in order, those of several mixed.
struct BusAssembly {
    /// Messages of which parts are missing. A further one displaces the oldest.
    static let limit = 32

    private struct Key: Hashable {
        let instance: String
        let kind: BusEnvelope.Kind
        let number: UInt64
    }

    private var incomplete: [(key: Key, parts: Int, bytes: [UInt8])] = []

    /// Bytes of messages of which parts are missing.
    var heldByteCount: Int { self.incomplete.reduce(0) { $0 + $1.bytes.count } }

    /// - Returns: the whole message with its last part; `nil` if parts are missing, or cannot be completed any more.
    mutating func add(_ envelope: BusEnvelope) -> [UInt8]? {
        if envelope.partCount == 1 { return Array(envelope.bytes) }
        let key = Key(instance: envelope.instance, kind: envelope.kind, number: envelope.number)
        let index = self.incomplete.firstIndex { $0.key == key }
        var (parts, bytes) = (0, [UInt8]())
        if let index {
            (_, parts, bytes) = self.incomplete.remove(at: index)
        }
        guard envelope.part == parts else { return nil }
        bytes.append(contentsOf: envelope.bytes)
        if parts + 1 == envelope.partCount { return bytes }
        if self.incomplete.count == Self.limit { self.incomplete.removeFirst() }
        self.incomplete.append((key, parts + 1, bytes))
        return nil
    }
}
