/// Every event as a line of JSON on standard output; failures on standard error too.
struct JSONFace: ConnectFace {
    let streams: StandardStreams
    let voice: ConnectPlan.Voice

    func tell(_ event: ConnectEvent) async throws(ConnectFailure) {
        if case .failed(let failure) = event { Ending.say("sluice: \(failure.line)") }
        if case .connecting = event { return }
        let line: [UInt8]
        do {
            line = try EventRecord(event).encoded()
        } catch {
            throw ConnectFailure(.inputOrOutput, "an event has no JSON: \(error)")
        }
        try await self.streams.write(line)
    }

    func note(_ text: String) async {
        if self.voice != .quiet { Ending.say("sluice: \(text)") }
    }
}
