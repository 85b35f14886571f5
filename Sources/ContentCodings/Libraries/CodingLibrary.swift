/// The functions of a library that was opened.
@safe
struct CodingLibrary<Functions>: @unchecked Sendable {  // Immutable; the functions may be called from any thread.
    let functions: Functions

    /// - Parameter open: fills in the functions; returns 1 if the library has all of them.
    /// - Returns: `nil` if it has not, or is not installed.
    init?(_ functions: Functions, open: (inout Functions) -> Int32) {
        var functions = functions
        guard open(&functions) == 1 else { return nil }
        self.functions = functions
    }
}
