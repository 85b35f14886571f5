import COpenSSL

/// The password for one encrypted item, and whether OpenSSL asked for it.
final class PasswordAttempt {
    let password: [UInt8]?
    fileprivate(set) var asked = false

    init(_ password: String?) {
        self.password = password.map { Array($0.utf8) }
    }
}

/// OpenSSL's `pem_password_cb`; without one OpenSSL would ask the terminal.
func answerPassword(
    _ buffer: UnsafeMutablePointer<CChar>?, _ size: Int32, _ writing: Int32, _ context: UnsafeMutableRawPointer?
) -> Int32 {
    guard let context = unsafe context, let buffer = unsafe buffer else { return -1 }
    let attempt = unsafe Unmanaged<PasswordAttempt>.fromOpaque(context).takeUnretainedValue()
    attempt.asked = true
    guard let password = attempt.password, password.count <= Int(size) else { return -1 }
    for (index, byte) in password.enumerated() { unsafe buffer[index] = CChar(bitPattern: byte) }
    return Int32(password.count)
}

func refusePassword(
    _ buffer: UnsafeMutablePointer<CChar>?, _ size: Int32, _ writing: Int32, _ context: UnsafeMutableRawPointer?
) -> Int32 {
    -1
}
