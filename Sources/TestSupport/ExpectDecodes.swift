import Testing

/// Expects a decoder to return `events` for `bytes` however they are split: whole, byte by byte, cut in two at up to 64
/// places, and followed by further bytes, both byte by byte and at once.
///
/// - Parameters:
///   - next: further bytes on the wire, which may cause more events after the expected ones.
///   - makeDecoder: creates a decoder, as a closure that takes a chunk and returns the events that it completes.
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
