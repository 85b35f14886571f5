import TLSEngine
import Testing

/// One end of an established connection with invented secrets: no rule depends on their values.
final class RecordEnd {
    enum Seen: Equatable {
        case bytes([UInt8])
        case closed
        case alert(UInt8)
        case failed(RecordError)
    }

    static let mine: UInt8 = 0x0A
    static let theirs: UInt8 = 0xB0

    let records: CompactRecordLayer
    private var isOver = false

    /// - Parameters:
    ///   - reading: the seed of this direction's secret.
    init(
        _ suite: RecordSuite, reading: UInt8 = RecordEnd.theirs, writing: UInt8 = RecordEnd.mine,
        recordsPerKey: UInt64 = CompactRecordLayer.recordsPerKey
    ) throws {
        guard let reading = RecordEnd.key(suite, reading, .opening),
            let writing = RecordEnd.key(suite, writing, .sealing)
        else { throw CreationFailure() }
        self.records = CompactRecordLayer(reading: reading, writing: writing, recordsPerKey: recordsPerKey)
    }

    init(_ records: CompactRecordLayer) {
        self.records = records
    }

    struct CreationFailure: Error {}

    /// The matching other end.
    static func other(_ suite: RecordSuite) throws -> RecordEnd {
        try RecordEnd(suite, reading: Self.mine, writing: Self.theirs)
    }

    static func key(_ suite: RecordSuite, _ seed: UInt8, _ use: RecordKey.Use) -> RecordKey? {
        let secret = (0..<(suite == .aes256GCM ? 48 : 32)).map { seed &+ UInt8($0) }
        return RecordKey.make(suite, secret: SecretBytes(secret), use: use)
    }

    /// Pulls until no bytes come or the connection has ended.
    func feed(_ bytes: [UInt8], room: Int = 20_000) -> [Seen] {
        var seen: [Seen] = []
        var position = 0
        var plaintext = [UInt8](repeating: 0, count: room)
        while !self.isOver {
            var span = plaintext.mutableSpan
            var target = span.mutableBytes
            guard let event = self.records.nextEvent(bytes.span.bytes, at: &position, plaintext: &target) else { break }
            switch event {
            case .plaintext(let count): seen.append(.bytes(Array(plaintext[..<count])))
            case .closed: seen.append(.closed)
            case .alert(let code): seen.append(.alert(code))
            case .failed(let fault): seen.append(.failed(fault))
            }
            if case .plaintext = event { continue }
            self.isOver = true
        }
        #expect(self.isOver || position == bytes.count)
        return seen
    }

    func write(_ bytes: [UInt8]) -> [UInt8] {
        let output = CiphertextBuffer()
        let isWritten = self.records.write(bytes.span.bytes, to: output)
        #expect(isWritten)
        return output.take { bytes in bytes.withUnsafeBytes { Array($0) } }
    }
}
