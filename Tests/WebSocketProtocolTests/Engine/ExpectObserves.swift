import Testing
import WebSocketProtocol

/// Expects an engine to report `expected` for `bytes`, however they arrive, and to end only frames whose end has
/// arrived.
func expectObserves(
    _ expected: [Observation], in bytes: [UInt8], by setting: EngineSetting,
    sourceLocation: SourceLocation = #_sourceLocation
) {
    for feeding in Feeding.usual {
        let seen = EngineDriver.observe(bytes, by: setting, fed: feeding)
        #expect(seen == expected, "fed \(feeding)", sourceLocation: sourceLocation)
    }
}

/// Expects an engine to report the messages of `expected` for `bytes`, and the same frames however they arrive.
func expectMessages(
    _ expected: [Observation], in bytes: [UInt8], by setting: EngineSetting,
    sourceLocation: SourceLocation = #_sourceLocation
) {
    let whole = EngineDriver.observe(bytes, by: setting, fed: .whole)
    #expect(whole.messages == expected, "fed whole", sourceLocation: sourceLocation)
    expectObserves(whole, in: bytes, by: setting, sourceLocation: sourceLocation)
}
