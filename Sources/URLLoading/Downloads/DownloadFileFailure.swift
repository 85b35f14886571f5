import Foundation
import StreamTransport

/// Why the file of a download cannot be had or written.
package struct DownloadFileFailure: Error, Equatable, Sendable {
    package enum Step: Sendable {
        case creating
        /// What a former attempt left.
        case reopening
        case writing
    }

    package let step: Step
    /// Of the system; 0 where a file is there that is not what was left.
    package let number: Int32

    package init(step: Step, number: Int32) {
        self.step = step
        self.number = number
    }

    package var code: URLError.Code {
        switch self.step {
        case .creating: .cannotCreateFile
        case .reopening: .cannotOpenFile
        case .writing: .cannotWriteToFile
        }
    }

    /// What the system said, for `NSUnderlyingErrorKey`.
    package var underlying: NSError? {
        self.number == 0 ? nil : NSError(domain: NSPOSIXErrorDomain, code: Int(self.number))
    }
}

extension DownloadFileFailure: CustomStringConvertible {
    package var description: String {
        let text = self.number == 0 ? "it is not the one that was left" : "\(SystemError(self.number))"
        return switch self.step {
        case .creating: "the file of the download cannot be made: \(text)"
        case .reopening: "the file of the download cannot be gone on with: \(text)"
        case .writing: "the file of the download cannot be written: \(text)"
        }
    }
}
