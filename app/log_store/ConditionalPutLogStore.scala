package kcga

import java.io.ByteArrayOutputStream
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.FileAlreadyExistsException
import java.util.{Iterator => JavaIterator}

import io.delta.storage.S3SingleDriverLogStore
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Options.CreateFileOptionKeys.FS_OPTION_CREATE_CONDITIONAL_OVERWRITE
import org.apache.hadoop.fs.Path
import org.apache.hadoop.fs.s3a.RemoteFileChangedException

/** The log of Delta Lake's tables on S3, for any number of JVMs that write: an entry is put only where there is none,
  * which S3 itself sees to (If-None-Match). All that write to a table must keep its log so.
  *
  * Whose answer got lost finds its own entry there, and takes it for another's: its transaction is tried again, and an
  * append that has a name is passed over then.
  */
class ConditionalPutLogStore(conf: Configuration) extends S3SingleDriverLogStore(conf) {

  override def write(
      path: Path, lines: JavaIterator[String], overwrite: java.lang.Boolean, conf: Configuration): Unit =
    if (overwrite) super.write(path, lines, overwrite, conf) else putIfAbsent(path, lines, conf)

  private def putIfAbsent(path: Path, lines: JavaIterator[String], conf: Configuration): Unit = {
    val entry = new ByteArrayOutputStream
    lines.forEachRemaining { line =>
      entry.write(line.getBytes(UTF_8))
      entry.write('\n')
    }
    val builder = path.getFileSystem(conf).createFile(path)
    builder.must(FS_OPTION_CREATE_CONDITIONAL_OVERWRITE, true)
    val stream = builder.build()
    try entry.writeTo(stream)
    catch {
      case failure: Throwable =>
        stream.abort() // to close it would put what there is
        throw failure
    }
    try stream.close()
    catch {
      case taken: RemoteFileChangedException =>
        throw new FileAlreadyExistsException(path.toString).initCause(taken)
    }
  }
}
