import Foundation
import SimulatedNetwork
import StreamTransport
import Testing
import URLLoading

@Suite("Interrupted uploads on the simulated network")
struct UploadCutPointTests {
    private static let size = UploadScene.content.count

    /// The ends, the limits of pieces and packets, and points between.
    private static let cutPoints: [Int] = {
        var points = [0, 1, 2, size - 2, size - 1, size]
        for piece in [16_384, 65_536, 262_144] { points += [piece - 1, piece, piece + 1, size - piece] }
        points += stride(from: 7919, to: size, by: size / 20)
        return points.sorted()
    }()

    @Test(arguments: WebProtocol.allCases)
    func uploadContinuesFromEveryCutPoint(_ version: WebProtocol) throws {
        for end in SimulatedUpload.End.allCases {
            for cut in Self.cutPoints {
                let scene = try UploadScene(UploadScene.content, cuts: [cut], by: end, version)
                let text = scene.run()
                let upload = scene.server.upload
                // When everything was received, and only the response is missing, an empty part asks for it.
                #expect(text == "done" && upload.isComplete, "cut at \(cut): \(scene.recorder.notes.error as Any)")
                #expect(Data(upload.content) == UploadScene.content, "cut at \(cut)")
                #expect(upload.requests == ["PUT", "HEAD", "PATCH \(cut)"], "cut at \(cut)")
                #expect(scene.complaints == [], "cut at \(cut)")
                #expect(scene.task.countOfBytesSent == Int64(Self.size))
            }
        }
    }

    @Test(arguments: WebProtocol.allCases)
    func uploadSurvivesManyInterruptions(_ version: WebProtocol) throws {
        let cuts = (0..<20).map { $0 * 4099 }
        let scene = try UploadScene(UploadScene.content, cuts: cuts, version)
        #expect(scene.run() == "done")
        #expect(Data(scene.server.upload.content) == UploadScene.content)
        #expect(scene.server.upload.requests.count == 1 + 2 * cuts.count)
        #expect(scene.complaints == [])
    }

    @Test(arguments: WebProtocol.allCases)
    func serverThatTakesNothingEndsTheUpload(_ version: WebProtocol) throws {
        let cuts = [1000] + Array(repeating: 0, count: 100)
        let scene = try UploadScene(UploadScene.content, cuts: cuts, version)
        let start = scene.network.now
        #expect(scene.run() == nil)
        let error = scene.recorder.error
        #expect(error?.code == .networkConnectionLost && error?.uploadTaskResumeData != nil)
        // The creation, and at most eight fruitless continuations after the first.
        #expect(scene.server.upload.requests.count { $0.hasPrefix("PATCH") } == 9)
        #expect(start.duration(to: scene.network.now) > .seconds(3 * 60))
        #expect(scene.complaints == [])
    }

    @Test(arguments: WebProtocol.allCases)
    func uploadIsWholeOrFailsUnderEveryFault(_ version: WebProtocol) throws {
        let content = UploadScene.content.prefix(40_000)
        var successes = 0
        for seed in UInt64(1)...40 {
            var faults = FaultPlan.rough
            faults.reset = 0.5
            faults.resetAfter = 0...40_000
            faults.lookupFailure = 0
            let scene = try UploadScene(content, cuts: [], version, seed: seed, faults: faults)
            let upload = scene.server.upload
            if scene.run() == nil {
                let codes: [URLError.Code] = [.networkConnectionLost, .cannotConnectToHost, .timedOut]
                #expect(codes.contains(scene.recorder.error?.code ?? .unknown), "seed \(seed)")
                #expect(content.starts(with: upload.content), "seed \(seed)")
            } else {
                successes += 1
                #expect(Data(upload.content) == content, "seed \(seed)")
            }
            #expect(scene.complaints == [], "seed \(seed)")
        }
        #expect(successes > 20)
    }

    @Test func suspendedTaskIsContinuedAfterItsResumption() throws {
        let scene = try UploadScene(UploadScene.content, cuts: [500_000])
        scene.task.resume()
        scene.advance { scene.server.upload.content.count == 500_000 }
        scene.task.suspend()
        scene.advance(atMost: .seconds(600)) { false }
        #expect(scene.server.upload.requests == ["PUT"])
        #expect(scene.run() == "done")
        #expect(Data(scene.server.upload.content) == UploadScene.content && scene.complaints == [])
    }

    @Test func cancelledPauseGivesResumeData() throws {
        let scene = try UploadScene(UploadScene.content, cuts: [500_000, 0, 0, 0, 0])
        scene.task.resume()
        scene.advance { scene.server.upload.requests.count == 7 }
        let found = Outcome<Data?>()
        scene.task.cancel { found.give($0) }
        scene.advance { scene.recorder.notes.completions > 0 }
        #expect(scene.recorder.error?.code == .cancelled)
        #expect(found.now??.isEmpty == false && scene.recorder.error?.uploadTaskResumeData == found.now ?? nil)
        scene.run()
        #expect(scene.complaints == [])
    }
}
