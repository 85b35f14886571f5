import TLSEngine

/// Makes a peer's records of an input: an instruction, a length, and as many bytes of content, again and again.
struct RecordWire: ~Copyable {
    private var wire: [UInt8] = []
    private var key: RecordKey?
    private let output = CiphertextBuffer()

    static func make(_ suite: RecordSuite, _ input: [UInt8]) -> [UInt8] {
        var wire = RecordWire(suite)
        var rest = input[...]
        while let instruction = rest.popFirst() {
            let length = Int(rest.popFirst() ?? 0)
            let content = Array(rest.prefix(length))
            rest = rest.dropFirst(length)
            wire.perform(instruction, content)
        }
        return wire.wire
    }

    static func key(_ suite: RecordSuite, _ use: RecordKey.Use) -> RecordKey? {
        let secret = [UInt8](repeating: 0x5C, count: suite == .aes256GCM ? 48 : 32)
        return RecordKey.make(suite, secret: SecretBytes(secret), use: use)
    }

    private init(_ suite: RecordSuite) {
        self.key = Self.key(suite, .sealing)
    }

    private mutating func perform(_ instruction: UInt8, _ content: [UInt8]) {
        switch instruction % 8 {
        case 0: self.seal(23, content)
        case 1: self.seal(21, content)
        case 2: self.seal(22, content)
        case 3: self.seal(0, content)
        case 4: self.wire += content
        case 5:
            self.seal(22, [24, 0, 0, 1, (content.first ?? 0) & 1])
            _ = self.key?.update()
        case 6: self.seal(content.first ?? 0, Array(content.dropFirst()))
        default: self.seal(23, (0..<64).flatMap { _ in content })
        }
        // The last record, changed at one place.
        if instruction & 0x80 != 0, !self.wire.isEmpty {
            self.wire[self.wire.count - 1 - Int(instruction >> 3 & 0x0F) % self.wire.count] ^= 1
        }
    }

    private mutating func seal(_ type: UInt8, _ content: [UInt8]) {
        _ = self.key?.seal(type, content.span.bytes, to: self.output)
        self.wire += self.output.take { bytes in bytes.withUnsafeBytes { Array($0) } }
    }
}
