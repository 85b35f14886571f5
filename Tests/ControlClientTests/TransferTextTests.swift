import CommandLineText
import ControlAPI
import ControlClient
import Testing

@Suite("Text about transfers")
struct TransferTextTests {
    private static func transfer(_ kind: String, _ state: String, status: Int? = nil) -> Transfer {
        Transfer {
            ($0.id, $0.kind, $0.state, $0.url) = ("7", kind, state, "http://h/f")
            ($0.sentBytes, $0.receivedBytes) = (512, 2048)
            $0.response = status.map { status in TransferResponse { $0.status = status } }
        }
    }

    @Test func transferIDIsOnePathSegment() {
        #expect(TransferText.path("7") == "/v1/transfers/7")
        #expect(TransferText.path("../x") == "/v1/transfers/..%2Fx")
    }

    @Test func summaryHasBytesOfEachDirection() {
        #expect(TransferText.summary(Self.transfer("data", "finished")) == "transfer 7 finished: received 2 KiB")
        let upload = Self.transfer("upload", "finished", status: 201)
        #expect(TransferText.summary(upload) == "transfer 7 finished: sent 512 B, status 201")
        var download = Self.transfer("download", "finished", status: 206)
        download.writtenBytes = 4096
        download.destination = "/srv/f"
        #expect(TransferText.summary(download) == "transfer 7 finished: received 4 KiB, status 206, to /srv/f")
    }

    @Test func uploadProgressCountsTheBodyUntilTheResponse() {
        var upload = Self.transfer("upload", "running")
        upload.receivedBytes = 0
        upload.expectedSendBytes = 1024
        #expect(TransferText.progress(upload, rate: nil) == ProgressLine(done: 512, total: 1024))
        upload.receivedBytes = 10
        #expect(TransferText.progress(upload, rate: nil) == ProgressLine(done: 10))
    }

    @Test func resumedDownloadProgressIncludesTheFile() {
        var download = Self.transfer("download", "running")
        (download.writtenBytes, download.expectedWriteBytes) = (4096, 8192)
        #expect(TransferText.progress(download, rate: 10) == ProgressLine(done: 4096, total: 8192, rate: 10))
    }

    @Test(
        arguments: [
            ("finished", 200, nil), ("finished", 399, nil), ("finished", 404, .peer), ("cancelled", nil, .cancelled),
            ("failed", nil, .peer), ("running", nil, .unavailable),
        ] as [(String, Int?, ControlFailure.Kind?)])
    func everyEndHasAKind(_ state: String, _ status: Int?, _ kind: ControlFailure.Kind?) {
        let failure = TransferText.failure(Self.transfer("data", state, status: status), remedy: "try that")
        #expect(failure?.kind == kind)
    }

    @Test func failureNamesTheCommandThatResumes() {
        let line = TransferText.failure(Self.transfer("download", "cancelled"), remedy: "try that")?.line
        #expect(line == "transfer 7 is cancelled; try that")
    }
}
