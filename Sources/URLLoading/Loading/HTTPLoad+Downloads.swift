import Foundation
import HTTPSemantics
import HTTPTransport
import HTTPTypes

/// Resuming a download.
extension HTTPLoad {
    /// - Returns: whether the response was handled.
    func resume(_ response: HTTPURLResponse, _ fields: HTTPFields) -> Bool {
        guard let resumption = self.loader.resumption, !self.restartsDownload else { return false }
        if let missingRange { return self.append(response, fields, to: missingRange) }
        switch resumption.range.evaluate(status: response.statusCode, fields: fields) {
        case .otherResponse, .restart: return false
        case .append(let total):
            self.step = .receiving(response, self.step.end)
            guard self.loader.resumeFile(response, total: total) else { return self.restartDownload() }
            self.completeUnlessDecoding()
        case .complete:
            guard self.loader.resumeFile(response, total: resumption.range.offset) else {
                return self.restartDownload()
            }
            self.abandonAttempt()
            self.finish()
        case .requestWhole: return self.restartDownload()
        }
        return true
    }

    /// A server may send a part of the range that was asked for (RFC 9110 §15.3.7).
    /// - Returns: whether another request follows.
    func requestsMissingRange() -> Bool {
        guard self.step.response?.statusCode == 206, self.loader.resumption != nil, !self.restartsDownload,
            let missing = self.loader.missingRange
        else { return false }
        self.missingRange = missing
        self.conditions = missing.requestFields
        self.attemptEnded()
        self.step = .sending
        self.send()
        return true
    }

    private func append(_ response: HTTPURLResponse, _ fields: HTTPFields, to missing: RangeResumption) -> Bool {
        if case .append = missing.evaluate(status: response.statusCode, fields: fields) {
            self.step = .receiving(response, self.step.end)
            self.completeUnlessDecoding()
        } else {
            self.fail(.networkConnectionLost, "The server sent a part of the rest, and now something else.")
        }
        return true
    }

    private func restartDownload() -> Bool {
        self.restartsDownload = true
        self.conditions = [:]
        self.abandonAttempt()
        self.send()
        return true
    }
}
