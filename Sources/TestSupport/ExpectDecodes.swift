import Testing

/// Expects a decoder to give `events` for `bytes`, however they arrive: whole, byte by byte, cut in two at every place
/// (up to 64 of them), and followed by the beginning of what comes next, byte by byte as well as at once.
///
/// - Parameters:
///   - next: what follows on the wire. It may give events of its own, after those expected.
///   - makeDecoder: a fresh decoder each time, as the closure that takes one chunk and returns the events it completed.
package func expectDecodes<Event: Equatable>(
    _ bytes: [UInt8], to events: [Event], followedBy next: [UInt8] = [],
    sourceLocation: SourceLocation = #_sourceLocation,
    by makeDecoder: () -> (_ chunk: [UInt8]) throws -> [Event]
) throws {
    func decode(_ chunks: [[UInt8]]) throws -> [Event] {
        let decoder = makeDecoder()
        return try chunks.flatMap { try decoder($0) }
    }
    #expect(try decode([bytes]) == events, "fed whole", sourceLocation: sourceLocation)
    #expect(try decode(bytes.map { [$0] }) == events, "fed byte by byte", sourceLocation: sourceLocation)
    for cut in stride(from: 1, to: bytes.count, by: max(1, bytes.count / 64)) {
        let pieces = [Array(bytes[..<cut]), Array(bytes[cut...])]
        #expect(try decode(pieces) == events, "cut after \(cut) bytes", sourceLocation: sourceLocation)
    }
    guard !next.isEmpty else { return }
    let whole = bytes + next
    let atOnce = try decode([whole]).prefix(events.count)
    #expect(Array(atOnce) == events, "with what follows", sourceLocation: sourceLocation)
    let byByte = try decode(whole.map { [$0] }).prefix(events.count)
    #expect(Array(byByte) == events, "with what follows, byte by byte", sourceLocation: sourceLocation)
}
