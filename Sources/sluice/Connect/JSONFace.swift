/// Every event as a line of JSON on standard output; failures on standard error too.
struct JSONFace: ConnectFace {
    let streams: StandardStreams
    let voice: ConnectPlan.Voice

    func tell(_ events: [ConnectEvent]) async throws(ConnectFailure) {
        var lines: [UInt8] = []
        for event in events {
            if case .failed(let failure) = event { Ending.say("sluice: \(failure.line)") }
            if case .connecting = event { continue }
            do {
                lines += try EventRecord(event).encoded()
            } catch {
                throw ConnectFailure(.inputOrOutput, "an event has no JSON: \(error)")
            }
        }
        try await self.streams.write(lines)
    }

    func note(_ text: String) async {
        if self.voice != .quiet { Ending.say("sluice: \(text)") }
    }
}
