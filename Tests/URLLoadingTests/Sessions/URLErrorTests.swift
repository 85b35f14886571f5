import Foundation
import Testing
import URLLoading

/// The deprecated property, without the compiler's warning.
private protocol FailureURLText {
    var failureURLString: String? { get }
}

extension URLError: FailureURLText {}

@Suite("Errors of URL loading")
struct URLErrorTests {
    @Test func cancellationReasonIsReadFromTheUserInfo() {
        let error = URLError(.cancelled, userInfo: [NSURLErrorBackgroundTaskCancelledReasonKey: 2])
        #expect(error.backgroundTaskCancelledReason == .insufficientSystemResources)
        #expect(URLError(.cancelled).backgroundTaskCancelledReason == nil)
        let odd = URLError(.cancelled, userInfo: [NSURLErrorBackgroundTaskCancelledReasonKey: 9])
        #expect(odd.backgroundTaskCancelledReason == nil)
    }

    @Test func networkUnavailableReasonIsReadFromTheUserInfo() {
        let reasons: [URLError.NetworkUnavailableReason] = [.cellular, .expensive, .constrained]
        for reason in reasons {
            let info = [NSURLErrorNetworkUnavailableReasonKey: reason.rawValue]
            #expect(URLError(.notConnectedToInternet, userInfo: info).networkUnavailableReason == reason)
        }
        #expect(reasons.map(\.rawValue) == [0, 1, 2])
    }

    @Test func resumeDataIsReadFromTheUserInfo() {
        let error = URLError(
            .networkConnectionLost,
            userInfo: [NSURLSessionDownloadTaskResumeData: Data([1]), NSURLSessionUploadTaskResumeData: Data([2])])
        #expect(error.downloadTaskResumeData == Data([1]) && error.uploadTaskResumeData == Data([2]))
        #expect(URLError(.timedOut).downloadTaskResumeData == nil)
    }

    /// The deprecated key, without the compiler's warning.
    private static var failingURLStringKey: String { (DeprecatedKeys() as any FailureURLKey).failingURLString }

    @Test func failingURLIsReadFromTheUserInfo() throws {
        let url = try #require(URL(string: "http://a.test/b"))
        let error = URLError(
            .badURL,
            userInfo: [NSURLErrorFailingURLErrorKey: url, Self.failingURLStringKey: "http://a.test/b"])
        #expect(error.failingURL == url && (error as any FailureURLText).failureURLString == "http://a.test/b")
        #expect(URLError(.badURL).failingURL == nil)
    }

    @Test func errorCodesAreFoundations() {
        let codes =
            [-1] + Array((-1022)...(-995)).filter { ![-998].contains($0) } + Array((-1103)...(-1100))
            + Array((-1206)...(-1200)) + [-2000] + Array((-3007)...(-3000))
        #expect(codes.filter { URLError.Code(rawValue: $0) == nil }.isEmpty)
    }

    @Test func codeForAFileOutsideTheSafeAreaIsAbsent() {
        // The deviation that the constant documents: this fails once Foundation defines the code.
        #expect(URLError.Code(rawValue: NSURLErrorFileOutsideSafeArea) == nil)
    }
}

private protocol FailureURLKey {
    var failingURLString: String { get }
}

private struct DeprecatedKeys: FailureURLKey {
    @available(*, deprecated, message: "So that the deprecated key can be read.")
    var failingURLString: String { NSURLErrorFailingURLStringErrorKey }
}
