import ByteKernels
import SessionTasks
import SimulatedNetwork
import StreamTransport
import TestSupport
import Testing
import WebSocketProtocol

@Suite("Cancelled receives lose no message")
struct WithdrawnReceiversTests {
    @Test(arguments: UInt64(1)...40)
    func everyMessageComesOnceAndInItsPlace(_ seed: UInt64) throws {
        var faults = FaultPlan.rough
        faults.reset = 0
        faults.refusedConnect = 0
        faults.hangingConnect = 0
        faults.unreachableConnect = 0
        faults.exhaustion = 0
        let harness = try WebSocketHarness(.simulation, seed: seed, faults: faults)
        let (client, server) = try harness.pair()
        var chance = SeededGenerator(seed: seed)
        var sent: [WebSocketTask.Message] = []
        var heard: [WebSocketTask.Message] = []
        var receiving: [UInt64] = []
        var sending: [UInt64] = []
        for index in 0..<120 {
            harness.perform {
                let message = WebSocketTask.Message.data(
                    [UInt8(index)] + chance.bytes(Int.random(in: 0...900, using: &chance)))
                var isOver = false
                let number = client.send(message) { result in
                    isOver = true
                    if case .success = result { sent.append(message) }
                }
                if !isOver { sending.append(number) }
                if let number = server.receiveOne(into: { heard.append($0) }) { receiving.append(number) }
                if Bool.random(using: &chance), let victim = receiving.randomElement(using: &chance) {
                    server.withdrawReceive(victim)
                }
                if Int.random(in: 0..<4, using: &chance) == 0, let victim = sending.randomElement(using: &chance) {
                    client.withdrawSend(victim)
                }
            }
            _ = harness.base.testbed.network?.run(for: .milliseconds(Int.random(in: 0...10, using: &chance)))
        }
        let rest = WebSocketRecorder()
        harness.perform { client.close(.normalClosure) }
        let end = WebSocketRecorder()
        end.watchEnd(client)
        for _ in 0..<200 {
            harness.perform { _ = server.receiveOne { heard.append($0) } }
        }
        #expect(harness.run(atMost: .seconds(120)) { end.end != nil })
        #expect(end.end?.isClean == true && rest.lines.isEmpty)
        #expect(heard == sent, "seed \(seed)\n\(harness.base.testbed.report)")
        harness.finish()
    }
}

extension WebSocketTask {
    /// - Returns: the number of the receive if it still waits.
    fileprivate func receiveOne(into take: @escaping (Message) -> Void) -> UInt64? {
        var isOver = false
        let number = self.receive { result in
            isOver = true
            if case .success(let message) = result { take(message) }
        }
        return isOver ? nil : number
    }
}
