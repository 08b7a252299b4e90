// Who imports the client has the messages, the wares, the credentials and the stores with it: one import at the top of a file.
@_exported public import Credentials
@_exported public import HttpCaching
@_exported public import HttpWare
@_exported public import Wares
