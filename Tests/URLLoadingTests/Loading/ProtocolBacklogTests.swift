import Foundation
import Synchronization
import Testing
import URLLoading

@Suite("Content of a program's protocols before it is consumed", .loading, .timeLimit(.minutes(20)))
struct ProtocolBacklogTests {
    /// Supplies as many MiB as the path says, as fast as possible, and counts them.
    final class FloodingProtocol: URLProtocol {
        struct Count {
            var brought = 0
            var taken = 0
            var mostAhead = 0
            var isOver = false
        }

        static let counts = Mutex<[String: Count]>([:])
        static let full = Mutex<[String: Gate]>([:])

        override class func canInit(with request: URLRequest) -> Bool {
            request.url?.host()?.hasSuffix("pours.test") ?? false
        }
        override func stopLoading() { Self.change(self.name) { $0.isOver = true } }

        private var name: String { self.request.url?.host() ?? "" }

        static func change(_ name: String, _ body: (inout Count) -> Void) {
            self.counts.withLock { counts in
                var count = counts[name] ?? Count()
                body(&count)
                count.mostAhead = max(count.mostAhead, count.brought - count.taken)
                counts[name] = count
            }
        }

        static func count(_ name: String) -> Count { self.counts.withLock { $0[name] ?? Count() } }

        override func startLoading() {
            guard let url = self.request.url,
                let response = HTTPURLResponse(url: url, statusCode: 200, httpVersion: "HTTP/1.1", headerFields: [:])
            else { return }
            self.client?.urlProtocol(self, didReceive: response, cacheStoragePolicy: .notAllowed)
            let piece = Data(count: 1 << 20)
            for index in 0..<(Int(url.lastPathComponent) ?? 0) {
                if index == ProtocolBacklog.limit >> 20 { Self.full.withLock { $0[self.name] }?.open() }
                self.client?.urlProtocol(self, didLoad: piece)
                Self.change(self.name) { $0.brought += piece.count }
            }
            self.client?.urlProtocolDidFinishLoading(self)
        }
    }

    private func gate(_ name: String) -> Gate {
        let gate = Gate()
        FloodingProtocol.full.withLock { $0[name] = gate }
        return gate
    }

    @Test func piecesWaitUntilTheirConsumerReads() async throws {
        let name = "slow.pours.test"
        let full = self.gate(name)
        var policies = Policies()
        // The response comes only when all buffers are full.
        policies.response = { _, answer in full.whenOpen { answer(.allow) } }
        policies.data = { _, data in FloodingProtocol.change(name) { $0.taken = data.count } }
        let recorder = DataRecorder(policies)
        let notes = try await recorder.run(#require(URL(string: "http://\(name)/40"))) {
            $0.protocolClasses = [FloodingProtocol.self]
        }
        #expect(notes.error == nil && notes.data.count == 40 << 20)
        // The buffered bytes, those being delivered, and the piece being supplied.
        #expect(FloodingProtocol.count(name).mostAhead <= ProtocolBacklog.limit + (3 << 20))
    }

    @Test func piecesWaitBeforeADownloadTakesThem() async throws {
        let name = "file.pours.test"
        let full = self.gate(name)
        var policies = Policies()
        policies.response = { _, answer in full.whenOpen { answer(.becomeDownload) } }
        let recorder = DataRecorder(policies)
        let notes = try await recorder.run(#require(URL(string: "http://\(name)/40"))) {
            $0.protocolClasses = [FloodingProtocol.self]
        }
        #expect(notes.error == nil && notes.fileContent?.count == 40 << 20)
    }

    @Test func piecesAreReleasedWithTheirTask() async throws {
        let name = "gone.pours.test"
        let full = self.gate(name)
        var policies = Policies()
        policies.response = { _, _ in }
        let recorder = DataRecorder(policies)
        let session = URLSession.test(recorder) { $0.protocolClasses = [FloodingProtocol.self] }
        let task = session.dataTask(with: try #require(URL(string: "http://\(name)/40")))
        task.resume()
        #expect(await full.pass())
        task.cancel()
        let notes = try await recorder.end()
        #expect((notes.error as? URLError)?.code == .cancelled && notes.completions == 1)
        session.finishTasksAndInvalidate()
        #expect(await recorder.log.has("invalid"))
    }

    @Test func backlogHasRoomForOnePieceOfAnyLength() {
        let backlog = ProtocolBacklog()
        #expect(backlog.add(ProtocolBacklog.hardLimit * 2, patience: 0))
        #expect(!backlog.add(1, patience: 0))
        backlog.take(ProtocolBacklog.hardLimit * 2)
        #expect(backlog.add(1, patience: 0) && backlog.add(ProtocolBacklog.limit, patience: 0))
    }

    @Test func pieceBeyondTheHardLimitIsRefused() {
        let backlog = ProtocolBacklog()
        var count = 0
        while backlog.add(1 << 20, patience: 0) { count += 1 }
        #expect(count == ProtocolBacklog.hardLimit >> 20)
        backlog.take(1 << 20)
        #expect(backlog.add(1 << 20, patience: 0) && !backlog.add(1 << 20, patience: 0))
        // After the end, calls are ignored.
        backlog.end()
        #expect(backlog.add(ProtocolBacklog.hardLimit, patience: 1000) && backlog.add(1, patience: 1000))
    }

    @Test func pieceIsHeldNoLongerThanItsPatience() {
        let backlog = ProtocolBacklog()
        #expect(backlog.add(ProtocolBacklog.limit, patience: 1000))
        #expect(backlog.add(1, patience: 0.05))
        #expect(backlog.add(ProtocolBacklog.hardLimit - ProtocolBacklog.limit - 1, patience: 0.05))
        #expect(!backlog.add(1, patience: 0.05))
    }
}
