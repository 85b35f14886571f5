import Foundation
import SimulatedNetwork
import StreamTransport
import TestSupport
import Testing
import URLLoading

/// A session with one upload task on the simulated network. Everything happens on the test's thread, in virtual time.
final class UploadScene {
    let network: SimulatedNetwork
    let server: SimulatedUploadServer
    let recorder = DataRecorder()
    let session: URLSession
    let task: URLSessionUploadTask
    private let queue = ManualQueue()
    private let loop: Loop
    private let host: ScriptedHost
    private let process: SimulatedProcess

    /// - Parameters:
    ///   - cuts: after how many bytes of its body each request is interrupted.
    ///   - faults: further faults of the network, drawn from `seed`.
    init(
        _ content: Data, cuts: [Int], by end: SimulatedUpload.End = .finish, _ version: WebProtocol = .current,
        seed: UInt64 = 1, faults: FaultPlan = .calm
    ) throws {
        self.network = SimulatedNetwork(seed: seed)
        let system = self.network.makeSystem()
        self.process = system.process
        let loop = Loop(system: system)
        system.drive { [weak loop] in loop?.turn() }
        self.loop = loop
        let hostSystem = self.network.makeSystem()
        let host = ScriptedHost(on: hostSystem)
        hostSystem.drive { [weak host] in host?.turn() }
        self.host = host
        let listener = try host.listen(at: .ipv4(address: 0x0A01_0001, port: 0))
        self.server = SimulatedUploadServer(SimulatedUpload(cuts: cuts), listener, on: self.network, end: end)
        self.network.faults = faults
        let configuration = URLSessionConfiguration.ephemeral
        configuration.connectionProxyDictionary = [:]
        configuration.assumesHTTP2 = version == .http2
        configuration.loop = loop
        self.session = URLSession(configuration: configuration, delegate: self.recorder, delegateQueue: self.queue)
        let port = try #require(listener.address.port)
        let url = try #require(URL(string: "http://10.1.0.1:\(port)/up"))
        self.task = self.session.uploadTask(with: .to(url, "PUT"), from: content)
    }

    /// Runs the task to its end.
    /// - Returns: the response's content, or `nil` after a failure.
    @discardableResult
    func run() -> String? {
        self.task.resume()
        self.advance { self.recorder.notes.completions > 0 }
        let notes = self.recorder.notes
        self.session.invalidateAndCancel()
        self.advance { false }
        self.host.close()
        return notes.error == nil ? String(decoding: notes.data, as: UTF8.self) : nil
    }

    /// Lets time pass until the condition is met, or nothing more happens within an hour.
    func advance(atMost limit: Duration = .seconds(3600), until condition: () -> Bool) {
        self.network.run(
            until: {
                self.server.step()
                self.queue.runOperations()
                return condition()
            }, atMost: limit)
    }

    /// What is left of the loop's resources after the session's end.
    var remains: [Int] { [self.process.openDescriptors, self.loop.watchedCount, self.loop.timerCount] }

    /// Problems of any run.
    var complaints: [String] {
        var complaints = self.server.upload.complaints + self.network.misuses
        // A creation that is sent again is counted anew; after an interruption the count goes on from the server's offset.
        let offsets = [0] + self.server.upload.requests.compactMap { Int64($0.split(separator: " ").last ?? "") }
        var end: Int64 = 0
        for sent in self.recorder.notes.sent {
            let start = sent.total - sent.now
            if sent.now <= 0 || sent.total > sent.expected || start != end && !offsets.contains(start) {
                complaints.append("sent \(sent), after \(end)")
            }
            end = sent.total
        }
        if self.remains != [0, 0, 0] { complaints.append("left: \(self.remains)") }
        return complaints
    }

    static let content = Data((0..<(1 << 20)).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ $0 >> 8 &+ $0 >> 16) })
}
